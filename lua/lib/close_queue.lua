-- close_queue ends a script's work on a queue: it wakes those who wait for what became available and keeps alarm_ms true.
-- Returns the news for whoever ran the script: the alarm when this script changed it, else "0", to see to it that a sweeper
-- comes by then; and what became a dead letter, as " <sequence number><cause>" for each (DLQ-24).
--@include wake_next
--@include text
local function close_queue(queue)
  for _, side in ipairs({ queue.main, queue.dead }) do
    if side.came > 0 then
      wake_next(side.waiting, side.came)
    end
  end
  local expected = queue.expected
  if expected and (queue.alarm == 0 or expected < queue.alarm) then
    queue.alarm, queue.alarm_changed = expected, true
    redis.call("HSET", queue.entity, "alarm_ms", text(expected))
  end
  return (queue.alarm_changed and text(queue.alarm) or "0") .. (queue.buried or "")
end
