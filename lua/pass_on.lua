-- pass_on: wake the next waiting sidecar if there is something to receive. Whoever was woken and has nobody to serve does this.
-- Reads: log length, locks, delayed, deferred.  Writes: waiting.
-- Flags: allow-oom
--
-- KEYS[1] log       stream  messages of the source
-- KEYS[2] locks     zset    lock by its end (ms)
-- KEYS[3] waiting   zset    sidecar by since when it waits (ms)
-- KEYS[4] delayed   zset    position by when it becomes visible (ms)
-- KEYS[5] deferred  zset    position by itself, with the sign turned while it is locked
--
-- Returns
--   OK
-- Cost: O(log N)
--@include available
--@include wake_next
local side = { log = KEYS[1], locks = KEYS[2], waiting = KEYS[3], delayed = KEYS[4], deferred = KEYS[5] }

local still = available(side)
if still > 0 then
  wake_next(side.waiting, still)
end
return { "OK" }
