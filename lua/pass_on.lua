-- pass_on: wake the next waiting sidecar if there is something to receive, or a session to accept. Whoever was woken and has nobody to serve does this.
-- Reads: entity, log length, locks, delayed, deferred, ready_sessions.  Writes: waiting.
-- Flags: allow-oom
--
-- KEYS[1] log       stream  messages of the source
-- KEYS[2] locks     zset    lock by its end (ms)
-- KEYS[3] waiting   zset    sidecar by since when it waits (ms)
-- KEYS[4] delayed   zset    position by when it becomes visible (ms)
-- KEYS[5] deferred  zset    position by itself, with the sign turned while it is locked
-- KEYS[6] entity    hash    options and state of the queue
-- KEYS[7] ready_sessions  zset  session that can be accepted by when it became ready (ms)
-- ARGV[1] sub       str     "" or "dead_": which of the two queues is the source
--
-- Returns
--   OK
-- Cost: O(log N)
--@include available
--@include wake_next
local side = { log = KEYS[1], locks = KEYS[2], waiting = KEYS[3], delayed = KEYS[4], deferred = KEYS[5] }

local has_sessions = ARGV[1] == "" and redis.call("HGET", KEYS[6], "requires_session") == "1"
local still = has_sessions and redis.call("ZCARD", KEYS[7]) or available(side)
if still > 0 then
  wake_next(side.waiting, still)
end
return { "OK" }
