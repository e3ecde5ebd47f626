-- pass_on: wake the next waiting sidecar if there is something to receive, or a session to accept. A sidecar does this
-- when it was woken and has no receive to serve, and when it stops waiting: then it leaves the list. If it is no
-- longer there, it was woken.
-- Reads: entity, log length, locks, delayed, deferred, ready_sessions.  Writes: waiting.
-- Flags: allow-oom
--
-- KEYS[1] log       stream  messages of the source
-- KEYS[2] locks     zset    lock by its end (ms)
-- KEYS[3] waiting   zset    sidecar by since when it waits (ms)
-- KEYS[4] delayed   zset    position by when it becomes visible (ms)
-- KEYS[5] deferred  zset    position by position; the score is negative while it is locked
-- KEYS[6] entity    hash    options and state of the queue
-- KEYS[7] ready_sessions  zset  session that can be accepted by when it became ready (ms)
-- ARGV[1] now       int     0 = server time
-- ARGV[2] sub       str     "" or "dead_": which of the two queues is the source
-- ARGV[3] leaving   str     the sidecar that leaves the list, "" = none does
--
-- Returns
--   OK
-- Cost: O(log N)
--@include available/count_available
--@include base/now_ms
--@include wake/wake_next
local side = { log = KEYS[1], locks = KEYS[2], waiting = KEYS[3], delayed = KEYS[4], deferred = KEYS[5] }
local now, sub, leaving = now_ms(ARGV[1]), ARGV[2], ARGV[3]

if leaving ~= "" and redis.call("ZREM", side.waiting, leaving) == 1 then
  return { "OK" }
end
local values = sub == "" and redis.call("HMGET", KEYS[6], "requires_session", "run_messages", "chunk_extra") or {}
local has_sessions = values[1] == "1"
side.run_messages, side.chunk_extra = tonumber(values[2] or "0"), tonumber(values[3] or "0")
local still = has_sessions and redis.call("ZCARD", KEYS[7]) or count_available(side)
if still > 0 then
  wake_next(side.waiting, still, now)
end
return { "OK" }
