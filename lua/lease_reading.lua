-- lease_reading: return what a sidecar has read for all of them, or lease the reading to the caller. An instant too far
-- ahead is not believed: the clock went back.
-- Reads: readings.  Writes: readings.
-- Flags: allow-oom
--
-- KEYS[1] readings  hash  "<name>:value" and "<name>:at" (ms) of what was read; "<name>:until" (ms) of the lease
-- ARGV[1] now         int  0 = server time
-- ARGV[2] name        str  of what is read
-- ARGV[3] max_age_ms  int  older ones are to be read again
-- ARGV[4] lease_ms    int  for how long
--
-- Returns
--   OK    age_ms value  it is young enough, or less than lease_ms too old and another sidecar reads
--   READ  at            the caller is to read it, and to share it as of this instant (ms)
--   WAIT                another sidecar reads it, and there is nothing of before
-- Cost: O(1)
--@include base/now_ms
--@include base/text
local readings, now, name = KEYS[1], now_ms(ARGV[1]), ARGV[2]
local max_age_ms, lease_ms = tonumber(ARGV[3]), tonumber(ARGV[4])

local note = redis.call("HMGET", readings, name .. ":value", name .. ":at", name .. ":until")
local age_ms = note[1] and now - tonumber(note[2] or "0") or -1
local left = tonumber(note[3] or "0") - now
local is_leased = left > 0 and left <= lease_ms
if age_ms >= 0 and age_ms < max_age_ms + (is_leased and lease_ms or 0) then
  return { "OK", text(age_ms), note[1] }
end
if is_leased then
  return { "WAIT" }
end
redis.call("HSET", readings, name .. ":until", text(now + lease_ms))
redis.call("PEXPIRE", readings, max_age_ms + 2 * lease_ms)
return { "READ", text(now) }
