-- share_reading: keep what a sidecar has read for all of them, and end its lease, see lease_reading. It expires when no
-- sidecar reads any more.
-- Reads: -.  Writes: readings.
-- Flags: allow-oom
--
-- KEYS[1] readings  hash  see lease_reading
-- ARGV[1] name     str  of what was read
-- ARGV[2] at       int  when reading began (ms)
-- ARGV[3] keep_ms  int  for how long to keep it
-- ARGV[4] value    str
--
-- Returns
--   OK
-- Cost: O(1)
local readings, name, at, keep_ms, value = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4]

redis.call("HSET", readings, name .. ":value", value, name .. ":at", at)
redis.call("HDEL", readings, name .. ":until")
redis.call("PEXPIRE", readings, keep_ms)
return { "OK" }
