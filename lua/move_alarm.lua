-- move_alarm: put off an alarm that was handled, unless it was set again meanwhile.
-- Reads: alarms.  Writes: alarms.
-- Flags: allow-oom
--
-- KEYS[1] alarms  zset  folded name by when a sweeper is to come (ms)
-- ARGV[1] name    str   folded name
-- ARGV[2] seen    int   what it was when it was taken (ms), -1 = there was none
-- ARGV[3] at      int   the new instant (ms), 0 = none
--
-- Returns
--   OK
-- Cost: O(log entities)
local alarms = KEYS[1]
local name, seen, at = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

if tonumber(redis.call("ZSCORE", alarms, name) or "-1") == seen then
  if at > 0 then
    redis.call("ZADD", alarms, at, name)
  else
    redis.call("ZREM", alarms, name)
  end
end
return { "OK" }
