-- recheck_ms returns when a caller that found nothing must look again without being woken: when something becomes due,
-- and at the latest when a lock taken meanwhile may end. Call it after close_queue.
--@include base/text
local function recheck_ms(queue)
  local after = math.min(10000, queue.lock_duration_ms)
  if queue.alarm > 0 then
    after = math.max(1, math.min(after, queue.alarm - queue.now))
  end
  return text(after)
end
