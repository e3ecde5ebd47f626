-- unused_at returns the first instant at which an entity may be removed if it is not used until then (IDLE-1, IDLE-8);
-- nil for one that stays. locks are as in last_use; dead_log is nil for a topic.
--@include entity/last_use
local function unused_at(entity, due, locks, dead_log, now)
  local values = redis.call("HMGET", entity, "idle_ms", "idle_keeps_dead")
  local idle_ms = tonumber(values[1] or "-1")
  if idle_ms < 0 then
    return nil
  end
  local at = last_use(entity, due, locks, now) + idle_ms
  if at <= now and values[2] == "1" and dead_log and redis.call("XLEN", dead_log) > 0 then
    -- IDLE-9. A call that takes the last of them uses the entity, and for their expiry there is an alarm
    return now + idle_ms
  end
  return at
end
