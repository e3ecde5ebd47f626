-- close_queue ends a script's work on a queue: it wakes those who wait for what became available, and keeps alarm_ms
-- true. Returns the notifications for the store: the alarm to set, or "0"; for each new dead letter " <sequence
-- number><cause>" (DLQ-24); for each orphan " <position>!" (note_orphan). An alarm is set only if it is earlier than
-- the one the script found: a sweeper comes for that one anyway.
--@include session/save_sessions
--@include wake/wake_next
--@include transfer/call_forwarder
--@include base/text
local function close_queue(queue)
  if queue.has_sessions then
    queue.main.newly_available = queue.main.newly_available + save_sessions(queue)
  end
  local calls = false
  for _, side in ipairs({ queue.main, queue.dead }) do
    if side.newly_available > 0 then
      wake_next(side.waiting, side.newly_available, queue.now)
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
  return alarm .. (queue.dead_lettered or "") .. (queue.orphans or "")
end
