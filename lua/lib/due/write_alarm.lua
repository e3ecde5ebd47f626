-- write_alarm keeps alarm_ms true for what a script put into a target. Returns the alarm to set, or "0".
--@include base/text
local function write_alarm(target)
  local expected = target.expected
  if not expected or (target.alarm > 0 and expected >= target.alarm) then
    return "0"
  end
  redis.call("HSET", target.entity, "alarm_ms", text(expected))
  return text(expected)
end
