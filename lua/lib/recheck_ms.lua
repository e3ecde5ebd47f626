-- recheck_ms says when whoever found nothing must look again although nobody woke it: when something becomes due, and at the
-- latest when a lock that is taken meanwhile may end unseen. close_queue must have run.
--@include text
local function recheck_ms(queue)
  local after = math.min(10000, queue.lock_duration_ms)
  if queue.alarm > 0 then
    after = math.max(1, math.min(after, queue.alarm - queue.now))
  end
  return text(after)
end
