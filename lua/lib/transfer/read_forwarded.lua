-- read_forwarded reads the messages that a transfer brings to a topic: see the header of arrive_in_topic.
--@include duplicate/history_key
--@include topic/read_copies
local function read_forwarded(topic, args, at)
  local messages = {}
  while at <= #args do
    local ends_ms, id, partition = tonumber(args[at + 1]), args[at + 2], args[at + 3]
    local message = { bytes = tonumber(args[at]), copied = tonumber(args[at + 4]) }
    message.key = topic.deduplicates and id ~= "" and history_key(topic.partitioned, id, partition) or nil
    message.copies, at = read_copies(args, at + 5)
    for _, form in ipairs(message.copies.forms) do
      form.ends_ms = ends_ms > 0 and ends_ms or nil
    end
    messages[#messages + 1] = message
  end
  return messages
end
