-- advance_sweep: note how far the look at all entities has come, and extend its lease, or end it.
-- Reads: whole_sweep.  Writes: whole_sweep.
-- Flags: allow-oom
--
-- KEYS[1] whole_sweep  hash  see lease_sweep
-- ARGV[1] now       int  0 = server time
-- ARGV[2] sidecar   str  its name
-- ARGV[3] lease_ms  int  for how long more
-- ARGV[4] after     str  folded name that was looked at last
-- ARGV[5] pause_ms  int  0 = there is more to look at; else all was looked at, and the next look begins after so long
--
-- Returns
--   OK
--   LOST  another sidecar has taken over
-- Cost: O(1)
--@include base/now_ms
--@include base/text
local whole_sweep = KEYS[1]
local now, sidecar, lease_ms, after, pause_ms = now_ms(ARGV[1]), ARGV[2], tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5])

if redis.call("HGET", whole_sweep, "sidecar") ~= sidecar then
  return { "LOST" }
end
if pause_ms > 0 then
  redis.call("HDEL", whole_sweep, "sidecar", "until", "after")
  redis.call("HSET", whole_sweep, "next", text(now + pause_ms))
else
  redis.call("HSET", whole_sweep, "until", text(now + lease_ms), "after", after)
end
return { "OK" }
