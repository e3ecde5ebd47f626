-- store_copies stores the copies of a message of a topic (TOPIC-1, TOPIC-5). origin is its number there. Returns how
-- many bytes more the subscriptions hold, which is negative when others made way. The caller ends with close_copies.
--@include topic/each_copy
--@include log/shorter_ttl
--@include intake/raise_largest
--@include topic/store_special_copy
--@include topic/share_copy
--@include topic/append_shared
local function store_copies(topic, targets, copies, origin)
  local forms, more = copies.forms, 0
  for _, form in ipairs(forms) do
    form.ttl_ms = shorter_ttl(form.ttl_ms, topic.default_ttl_ms)
  end
  -- A body that only one subscription gets, or that no answer may have beside others, is stored with its copies.
  local is_shared = copies.count > 1 and #forms[1].payload <= 1048576
  each_copy(copies.text, function(i, form, reason)
    local target, copy = targets[i], forms[form]
    more = more + copy.bytes
    raise_largest(target, #copy.payload)
    local is_common = target.is_plain and copy.ttl_ms < 0 and not copy.ends_ms
    local is_second = target.places and target.places[#target.places] == copy.place
    if is_common and target.shares and form == 1 and is_shared and not is_second then
      return share_copy(topic, target, copy, origin)
    end
    append_shared(topic, target) -- which came before
    if is_common then -- in the fewest steps
      target.sequence = target.sequence + 1
      redis.call("XADD", target.log, string.format("%d-%s", target.sequence, copy.size), topic.immortal, copy.payload,
        "e", origin)
      target.newly_available, target.added = target.newly_available + 1, target.added + copy.bytes
    else
      more = more - store_special_copy(topic, target, copy, origin, reason and copies.reasons[reason])
    end
  end)
  return more
end
