-- store_copies stores the copies of a message of a topic (TOPIC-1, TOPIC-5), origin being its number there. Returns how many bytes more
-- the subscriptions hold then, which is less than none when others made way.
--@include each_copy
--@include shorter_ttl
--@include store_copy
local function store_copies(topic, targets, message, origin)
  local forms, more = message.forms, 0
  for _, form in ipairs(forms) do
    form.ttl_ms = shorter_ttl(form.ttl_ms, topic.default_ttl_ms)
  end
  each_copy(message.copies, function(i, form, reason)
    local target, copy = targets[i], forms[form]
    local bytes, sequence = copy.bytes, target.sequence + 1
    target.sequence, more = sequence, more + bytes
    if bytes > target.largest then
      target.largest = bytes
      redis.call("HSET", target.entity, "largest", copy.size)
    end
    if target.is_plain and copy.ttl_ms < 0 and not copy.ends_ms then -- the common copy, in the fewest steps
      redis.call("XADD", target.log, string.format("%d-%s", sequence, copy.size), topic.immortal, copy.payload, "e", origin)
      target.came, target.added = target.came + 1, target.added + bytes
    else
      more = more - store_copy(topic, target, copy, origin, reason and message.reasons[reason])
    end
  end)
  return more
end
