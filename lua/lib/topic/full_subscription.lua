-- full_subscription returns the refusal of copies, counted by subscription (count_copies), with which one of the
-- subscriptions would have more messages than it may (TOPIC-7), of several the first by name; nil when none would.
local function full_subscription(targets, counts)
  local full
  for i, count in pairs(counts) do
    local target = targets[i]
    if target.messages and count > 0 and target.messages + count > target.max_message_count then
      full = math.min(full or i, i)
    end
  end
  if not full then
    return nil
  end
  local target = targets[full]
  local dead_bytes = redis.call("HGET", target.entity, "dead_bytes") or "0"
  return { "ENTITY_FULL", "messages", target.messages + counts[full], target.max_message_count, dead_bytes, full }
end
