-- is_heavy reports whether a message of a side may count for more than safe bytes, by the largest payload of the queue.
-- If not, none need be read. With changed properties, or among dead letters, every message is heavy. Nothing is heavy
-- for a safe of 0.
--@include log/has_changes
local function is_heavy(queue, side, safe)
  return safe > 0 and (queue.largest + 256 > safe or side ~= queue.main or has_changes(side))
end
