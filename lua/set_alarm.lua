-- set_alarm: make a sweeper come to entities by an instant. An alarm that is there becomes earlier, if only by a
-- millisecond: a sweeper at work on the entity may have looked too early, and its own move_alarm must no longer apply.
-- Reads: alarms.  Writes: alarms.
-- Flags: allow-oom
--
-- KEYS[1] alarms  zset  folded name by when a sweeper is to come (ms)
-- ARGV[1..] name at ...  at most 500 times: folded name, and the instant (ms)
--
-- Returns
--   OK
-- Cost: O(entities named log entities)
local alarms = KEYS[1]

for i = 1, #ARGV, 2 do
  local name, at = ARGV[i], tonumber(ARGV[i + 1])
  local present = redis.call("ZSCORE", alarms, name)
  if present then
    at = math.min(at, present - 1)
  end
  redis.call("ZADD", alarms, at, name)
end
return { "OK" }
