-- full_subscription returns the refusal of copies, counted by subscription (count_copies), with which one of the
-- subscriptions would have more messages than it may (TOPIC-7); nil when none would.
local function full_subscription(targets, counts)
  for i, count in pairs(counts) do
    local target = targets[i]
    if target.messages and count > 0 and target.messages + count > target.max_message_count then
      return { "ENTITY_FULL", "messages", target.messages + count, target.max_message_count, "0", i }
    end
  end
  return nil
end
