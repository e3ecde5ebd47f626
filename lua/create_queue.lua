-- create_queue: make a queue unless its name is taken (ENT-2, ENT-6).
-- Reads: entity.  Writes: entity.
--
-- KEYS[1] entity  hash  options and state of the queue
-- ARGV[1] now     int   0 = server time
-- ARGV[2..] field value ...  name and options
--
-- Returns
--   OK                     field value ...
--   ENTITY_ALREADY_EXISTS  field value ...
-- Cost: O(1)
--@include now_ms
--@include text
local entity = KEYS[1]
local now = text(now_ms(ARGV[1]))

if redis.call("EXISTS", entity) == 1 then
  return { "ENTITY_ALREADY_EXISTS", redis.call("HGETALL", entity) }
end
redis.call("HSET", entity, "schema", 1, "kind", "queue", "created_ms", now, "updated_ms", now, "accessed_ms", now)
for i = 2, #ARGV, 2 do
  redis.call("HSET", entity, ARGV[i], ARGV[i + 1])
end
return { "OK", redis.call("HGETALL", entity) }
