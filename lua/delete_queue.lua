-- delete_queue: remove a queue and all it holds (ENT-8), or the record of a queue or topic with several partitions, and
-- make waiting receives look again.
-- Reads: entity, suspended, due, locks, dead_locks, session_locks, dead_log.  Writes: every key of the queue.
-- Flags: allow-oom
--
-- KEYS[1] waiting       zset  sidecar by since when it waits (ms)
-- KEYS[2] dead_waiting  zset  as waiting, of the dead-letter queue
-- KEYS[3] transfers_dead_waiting  zset  as waiting, of its transfer dead-letter queue
-- KEYS[4] entity        hash  options and state of the queue
-- KEYS[5] session_waiting  hash  session -> where its holder waits
-- KEYS[6] session_locks    zset  held session by the end of its lock (ms)
-- KEYS[7] locks            zset  lock by its end (ms)
-- KEYS[8] dead_locks       zset  as locks, of the dead-letter queue
-- KEYS[9] transfers_dead_locks  zset  as locks, of its transfer dead-letter queue
-- KEYS[10] due             zset  scheduled message by when it is due (ms)
-- KEYS[11] dead_log        stream  dead letters
-- KEYS[12] transfers_dead_log   stream  transfer dead letters
-- KEYS[13] barred          string  see lib/entity/bar_ticket.lua
-- KEYS[14] run_locks       zset  lock of several messages by its end (ms)
-- KEYS[15] suspended       hash  in place of entity of a partition that a removal has suspended: see suspend
-- KEYS[16..] rest          -     every other key of the queue and of its transfer dead-letter queue
-- ARGV[1] now           int   0 = server time
-- ARGV[2] unused        int   1: only if it was not used for AutoDeleteOnIdle (IDLE-8)
-- ARGV[3] kind          str   queue; of a record partitioned_queue or partitioned_topic
-- ARGV[4] incarnation   int   the one that a record must have; "" for a queue
-- ARGV[5] removal       int   of an idle record: the one that has suspended all partitions, see begin_removal; else ""
--
-- Returns
--   OK                ticket   of its name: see register_name
--   IN_USE            at_ms    when to look again, 0 = as sweep returns
--   ENTITY_NOT_FOUND
-- Cost: O(waiting sidecars); memory is freed in the background
--@include base/now_ms
--@include base/text
--@include entity/plain_kind
--@include wake/wake_all
--@include wake/wake_all_holders
--@include entity/unused_at
--@include entity/history
--@include entity/postpone_removal
--@include entity/bar_ticket
local waiting, dead_waiting, transfers_dead_waiting = KEYS[1], KEYS[2], KEYS[3]
local entity, session_waiting, session_locks, locks, dead_locks = KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local transfers_dead_locks, due, dead_log, transfers_dead_log, barred = KEYS[9], KEYS[10], KEYS[11], KEYS[12], KEYS[13]
local run_locks, suspended = KEYS[14], KEYS[15]
local now, unused, kind, incarnation, removal = now_ms(ARGV[1]), ARGV[2] == "1", ARGV[3], ARGV[4], ARGV[5]

local is_suspended = redis.call("HLEN", suspended) > 0
local present = redis.call("HMGET", is_suspended and suspended or entity, "kind", "incarnation", "removal",
  "removal_in", "ticket")
if plain_kind(present[1]) ~= kind or incarnation ~= "" and present[2] ~= incarnation then
  return { "ENTITY_NOT_FOUND" }
end
if removal ~= "" and (present[3] ~= removal or present[4] ~= history()) then
  return { "IN_USE", "0" } -- a partition may have been used since
end
if unused then
  local at = unused_at(entity, due, { locks, run_locks, dead_locks, session_locks }, dead_log, now)
  if not at or at > now then
    return { "IN_USE", "0" }
  end
  -- which sweep does not look at
  if unused_at(entity, due, { transfers_dead_locks }, transfers_dead_log, now) > now then
    return { "IN_USE", postpone_removal(entity, now) }
  end
end
local ticket = present[5] or text(now) -- the latter of one that an older version made
wake_all(waiting)
wake_all(dead_waiting)
wake_all(transfers_dead_waiting)
wake_all_holders(session_waiting, session_locks)
redis.call("UNLINK", unpack(KEYS))
bar_ticket(barred, ticket)
return { "OK", ticket }
