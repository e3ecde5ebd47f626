-- full_subscription returns the refusal of copies, counted by subscription (count_copies), with which one of the
-- subscriptions would have more messages than it may (TOPIC-7), of several the first by name; nil when none would.
local function full_subscription(targets, counts)
  for i, target in ipairs(targets) do
    local count = counts[i] or 0
    if target.messages and count > 0 and target.messages + count > target.max_message_count then
      local dead_bytes = redis.call("HGET", target.entity, "dead_bytes") or "0"
      return { "ENTITY_FULL", "messages", target.messages + count, target.max_message_count, dead_bytes, i }
    end
  end
  return nil
end
