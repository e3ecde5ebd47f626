-- even_weight returns what every message of a side counts for at most (weigh_entry), if that is little and most count
-- for about as much: then none is read, and an answer is half full at least. nil when sizes differ, are large, or are
-- not known.
--@include log/has_changes
--@include log/count_messages
local function even_weight(queue, side)
  local heaviest = queue.largest + 256
  if heaviest > 262144 or side ~= queue.main or has_changes(side) then
    return nil
  end
  local messages = count_messages(side) + redis.call("ZCARD", queue.due) -- their bytes are added up together
  return 2 * (side.bytes / math.max(1, messages) + 256) >= heaviest and heaviest or nil
end
