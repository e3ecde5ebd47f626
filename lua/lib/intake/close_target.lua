-- close_target ends a script's work on a target: it wakes those who wait for what became available, and keeps alarm_ms
-- true. Returns the alarm to be set, or "0".
--@include session/save_sessions
--@include due/write_alarm
--@include wake/wake_next
--@include transfer/call_forwarder
local function close_target(target)
  local available = target.has_sessions and save_sessions(target) or target.newly_available
  local alarm = write_alarm(target)
  if available > 0 then
    wake_next(target.waiting, available, target.now)
    if target.forwards then
      return call_forwarder(target, alarm)
    end
  end
  return alarm
end
