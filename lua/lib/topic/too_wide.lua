-- too_wide returns the refusal of a call with too many copies for one script, nil for any other call. A scheduled
-- message gets its copies in a step of its own, so it is compared alone.
--@include base/text
--@include topic/too_many_copies
local function too_wide(topic, messages)
  local copies, bytes, refused, index = 0, 0, false, -1
  for i, message in ipairs(messages) do
    if not message.waits then
      copies, bytes = copies + message.copies.count, bytes + message.copied
    elseif too_many_copies(topic, message.copies.count, message.copied) then
      copies, bytes, refused, index = message.copies.count, message.copied, true, i - 1
      break
    end
  end
  if refused or too_many_copies(topic, copies, bytes) then
    return { "TOO_MANY_COPIES", copies, text(bytes), text(math.max(67108864, topic.max_message_bytes)), index }
  end
  return nil
end
