-- update_queue: set some options of a queue (ENT-7, ENT-10) and make waiting receives look again (STAT-5).
-- Reads: entity.  Writes: entity, waiting, dead_waiting, session_waiting.
--
-- KEYS[1] entity        hash  options and state of the queue
-- KEYS[2] waiting       zset  sidecar by since when it waits (ms)
-- KEYS[3] dead_waiting  zset  as waiting, of the dead-letter queue
-- KEYS[4] session_waiting  hash  session -> where its holder waits
-- KEYS[5] session_locks    zset  held session by the end of its lock (ms)
-- ARGV[1] now           int   0 = server time
-- ARGV[2..] field value ...  the options to set
--
-- Returns
--   OK                field value ...
--   ENTITY_NOT_FOUND
--   PROPERTY_IMMUTABLE  field
-- Cost: O(waiting sidecars)
--@include now_ms
--@include text
--@include wake_all
--@include wake_holders
local entity, waiting, dead_waiting, session_waiting = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local session_locks = KEYS[5]
local now = text(now_ms(ARGV[1]))

if redis.call("EXISTS", entity) == 0 then
  return { "ENTITY_NOT_FOUND" }
end
for i = 2, #ARGV, 2 do
  local immutable = ARGV[i] == "requires_duplicate_detection" or ARGV[i] == "partitioned" or ARGV[i] == "requires_session"
  if immutable and redis.call("HGET", entity, ARGV[i]) ~= ARGV[i + 1] then
    return { "PROPERTY_IMMUTABLE", ARGV[i] }
  end
end
for i = 2, #ARGV, 2 do
  redis.call("HSET", entity, ARGV[i], ARGV[i + 1])
end
redis.call("HSET", entity, "updated_ms", now, "accessed_ms", now)
wake_all(waiting)
wake_all(dead_waiting)
wake_holders(session_waiting, session_locks)
return { "OK", redis.call("HGETALL", entity) }
