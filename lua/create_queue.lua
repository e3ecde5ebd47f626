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
-- The note is for whoever looks here. It is also long enough to make Redis keep the hash as a table, in which a field is found
-- at once, and not as a list that every script would search.
redis.call("HSET", entity, "about", "A queue of Sidebus. Change it with sidebus entity, not by hand: its keys belong together.",
  "schema", 1, "kind", "queue", "created_ms", now, "updated_ms", now, "accessed_ms", now)
for i = 2, #ARGV, 2 do
  redis.call("HSET", entity, ARGV[i], ARGV[i + 1])
end
return { "OK", redis.call("HGETALL", entity) }
