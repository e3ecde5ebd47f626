-- delete_queue: remove a queue and all it holds (ENT-8) and make waiting receives look again.
-- Reads: entity, due, locks, dead_locks, session_locks, dead_log.  Writes: every key of the queue.
-- Flags: allow-oom
--
-- KEYS[1] waiting       zset  sidecar by since when it waits (ms)
-- KEYS[2] dead_waiting  zset  as waiting, of the dead-letter queue
-- KEYS[3] transfers_waiting  zset  as waiting, of its transfer dead-letter queue
-- KEYS[4] entity        hash  options and state of the queue
-- KEYS[5] session_waiting  hash  session -> where its holder waits
-- KEYS[6] session_locks    zset  held session by the end of its lock (ms)
-- KEYS[7] locks            zset  lock by its end (ms)
-- KEYS[8] dead_locks       zset  as locks, of the dead-letter queue
-- KEYS[9] transfers_locks  zset  as locks, of its transfer dead-letter queue
-- KEYS[10] due             zset  scheduled message by when it is due (ms)
-- KEYS[11] dead_log        stream  dead letters
-- KEYS[12] transfers_log   stream  transfer dead letters
-- KEYS[13..] rest          -     every other key of the queue and of its transfer dead-letter queue
-- ARGV[1] now           int   0 = server time
-- ARGV[2] unused        int   1: only if nobody has used it for as long as AutoDeleteOnIdle says (IDLE-8)
--
-- Returns
--   OK                deleted_ms
--   IN_USE            at_ms    when to look again, 0 = see what sweep says
--   ENTITY_NOT_FOUND
-- Cost: O(waiting sidecars); memory is freed in the background
--@include now_ms
--@include text
--@include wake_all
--@include wake_holders
--@include unused_at
--@include keep_a_while
local waiting, dead_waiting, transfers_waiting = KEYS[1], KEYS[2], KEYS[3]
local entity, session_waiting, session_locks, locks, dead_locks = KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local transfers_locks, due, dead_log, transfers_log = KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local now, unused = now_ms(ARGV[1]), ARGV[2] == "1"

if redis.call("HGET", entity, "kind") ~= "queue" then
  return { "ENTITY_NOT_FOUND" }
end
if unused then
  local at = unused_at(entity, due, { locks, dead_locks, session_locks }, dead_log, now)
  if not at or at > now then
    return { "IN_USE", "0" }
  end
  if unused_at(entity, due, { transfers_locks }, transfers_log, now) > now then -- which sweep does not look at
    return { "IN_USE", keep_a_while(entity, now) }
  end
end
wake_all(waiting)
wake_all(dead_waiting)
wake_all(transfers_waiting)
wake_holders(session_waiting, session_locks)
redis.call("UNLINK", unpack(KEYS))
return { "OK", text(now) }
