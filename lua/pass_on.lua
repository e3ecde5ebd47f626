-- pass_on: wake the next waiting sidecar if there is something to receive. Whoever was woken and has nobody to serve does this.
-- Reads: log length, locks.  Writes: waiting.
-- Flags: allow-oom
--
-- KEYS[1] log      stream  messages of the source
-- KEYS[2] locks    zset    lock by its end (ms)
-- KEYS[3] waiting  zset    sidecar by since when it waits (ms)
--
-- Returns
--   OK
-- Cost: O(1)
--@include wake_next
local log, locks, waiting = KEYS[1], KEYS[2], KEYS[3]

local available = redis.call("XLEN", log) - redis.call("ZCARD", locks)
if available > 0 then
  wake_next(waiting, available)
end
return { "OK" }
