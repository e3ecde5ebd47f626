-- answer_limit cuts a number of messages so that their bodies, at the side's average size, stay within a bound, and at
-- the size of the largest message that the queue ever took within sixteen times that. At least one is always allowed.
local function answer_limit(queue, side, limit, bound)
  local messages = redis.call("XLEN", side.log)
  if side == queue.main then
    messages = messages + redis.call("ZCARD", queue.due) -- whose bytes count too
  end
  local average = side.bytes / math.max(1, messages)
  local most = math.min(bound / math.max(1, average), 16 * bound / math.max(1, queue.largest))
  return math.max(1, math.min(limit, math.floor(most)))
end
