-- close_queue ends a script's work on a queue: it wakes those who wait for what became available and keeps alarm_ms true.
-- Returns the news for whoever ran the script: an alarm to be set, or "0", and then what became a dead letter, as
-- " <sequence number><cause>" for each (DLQ-24). An alarm need be set only if it is earlier than the one the script found:
-- by that one a sweeper comes anyway, and puts it off itself.
--@include close_sessions
--@include wake_next
--@include call_forwarder
--@include text
local function close_queue(queue)
  if queue.has_sessions then
    queue.main.came = queue.main.came + close_sessions(queue)
  end
  local calls = false
  for _, side in ipairs({ queue.main, queue.dead }) do
    if side.came > 0 then
      wake_next(side.waiting, side.came)
      calls = calls or side.forwards
    end
  end
  local expected, alarm = queue.expected, "0"
  if expected and (queue.alarm == 0 or expected < queue.alarm) then
    queue.alarm = expected
    redis.call("HSET", queue.entity, "alarm_ms", text(expected))
    if queue.found_alarm == 0 or expected < queue.found_alarm then
      alarm = text(expected)
    end
  end
  if calls then
    alarm = call_forwarder(queue, alarm)
  end
  return alarm .. (queue.buried or "")
end
