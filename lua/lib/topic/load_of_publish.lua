-- load_of_publish describes a call of publish. is_bounded reports whether one of the subscriptions may refuse a copy.
--@include duplicate/match_history
--@include topic/too_wide
--@include topic/count_copies
--@include topic/full_subscription
local function load_of_publish(topic, targets, messages, is_bounded)
  local load = { count = #messages, total = 0, bytes = 0, new = 0, counted = 0, messages = messages, copies = {} }
  local ids, originals = {}, {}
  if topic.deduplicates then
    for i, message in ipairs(messages) do
      ids[i] = message.key
    end
    originals = match_history(topic, ids)
    load.ids, load.originals = ids, originals
  end
  for i, message in ipairs(messages) do
    local size = tonumber(message.size)
    if size > topic.max_message_bytes then
      return { too_large = true, index = i - 1, total = size }
    end
    load.total = load.total + size
    if topic.partitioned and message.partition ~= messages[1].partition then
      load.apart = load.apart or i - 1
    end
    if not originals[i] then
      load.bytes, load.new = load.bytes + message.bytes, load.new + 1
      if topic.fails_unmatched and not message.waits and message.copies.text == "" then
        load.unmatched = load.unmatched or i - 1
      end
      if is_bounded and not message.waits then
        count_copies(load.copies, message.copies)
      end
    end
  end
  load.keys = topic.deduplicates and load.new or 0
  load.wide = too_wide(topic, messages)
  load.full = full_subscription(targets, load.copies)
  return load
end
