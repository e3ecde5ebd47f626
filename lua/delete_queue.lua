-- delete_queue: remove a queue and all it holds (ENT-8) and make waiting receives look again.
-- Reads: entity.  Writes: every key of the queue.
-- Flags: allow-oom
--
-- KEYS[1] waiting       zset  sidecar by since when it waits (ms)
-- KEYS[2] dead_waiting  zset  as waiting, of the dead-letter queue
-- KEYS[3] transfers_waiting  zset  as waiting, of its transfer dead-letter queue
-- KEYS[4] entity        hash  options and state of the queue
-- KEYS[5] session_waiting  hash  session -> where its holder waits
-- KEYS[6] session_locks    zset  held session by the end of its lock (ms)
-- KEYS[7..] rest        -     every other key of the queue and of its transfer dead-letter queue
-- ARGV[1] now           int   0 = server time
--
-- Returns
--   OK                deleted_ms
--   ENTITY_NOT_FOUND
-- Cost: O(waiting sidecars); memory is freed in the background
--@include now_ms
--@include text
--@include wake_all
--@include wake_holders
local waiting, dead_waiting, transfers_waiting = KEYS[1], KEYS[2], KEYS[3]
local entity, session_waiting, session_locks = KEYS[4], KEYS[5], KEYS[6]
local now = now_ms(ARGV[1])

if redis.call("HGET", entity, "kind") ~= "queue" then
  return { "ENTITY_NOT_FOUND" }
end
wake_all(waiting)
wake_all(dead_waiting)
wake_all(transfers_waiting)
wake_holders(session_waiting, session_locks)
redis.call("UNLINK", unpack(KEYS))
return { "OK", text(now) }
