-- reads_at_once returns how many messages a script may read before it looks how large they are: at most limit, and
-- about bytes by the largest payload of the queue, but at least one. 33,000 are what the texts of a dead letter and
-- changed properties may add.
local function reads_at_once(queue, limit, bytes)
  return math.max(1, math.min(limit, math.floor(bytes / (queue.largest + 33000))))
end
