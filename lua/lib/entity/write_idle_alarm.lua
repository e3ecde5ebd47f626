-- write_idle_alarm makes alarm_ms no later than the end of AutoDeleteOnIdle, counted from now, for an entity that was
-- made or updated.
--@include base/text
local function write_idle_alarm(entity, now)
  local values = redis.call("HMGET", entity, "idle_ms", "alarm_ms")
  local idle_ms, alarm = tonumber(values[1] or "-1"), tonumber(values[2] or "0")
  if idle_ms >= 0 and (alarm == 0 or now + idle_ms < alarm) then
    redis.call("HSET", entity, "alarm_ms", text(now + idle_ms))
  end
end
