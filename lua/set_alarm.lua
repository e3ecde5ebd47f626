-- set_alarm: see to it that a sweeper comes to entities by an instant. Any alarm that is there is made earlier, if only by
-- a millisecond: a sweeper that is at work on the entity may have looked before what this alarm is for, and must find that its
-- own move_alarm no longer applies.
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
