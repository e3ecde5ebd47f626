-- read_publications reads the messages of a call of publish, which begin at a place of args: see its header. Returns
-- them, and where the next call begins.
--@include duplicate/history_key
--@include log/size_and_ttl
--@include log/shorter_ttl
--@include topic/read_copies
local function read_publications(topic, args, at, count)
  local messages = {}
  for i = 1, count do
    local size, ttl_ms = size_and_ttl(args[at])
    local message = {
      size = size, due_ms = tonumber(args[at + 1]), id = args[at + 2], partition = args[at + 3],
      bytes = tonumber(args[at + 4]), copied = tonumber(args[at + 4]),
    }
    message.key = topic.deduplicates and history_key(topic.partitioned, message.id, message.partition) or nil
    message.copies, at = read_copies(args, at + 5)
    if message.due_ms > topic.now then
      message.waits, message.bytes = true, tonumber(size)
      message.ttl_ms, message.payload = shorter_ttl(ttl_ms, topic.default_ttl_ms), message.copies.forms[1].payload
    end
    messages[i] = message
  end
  return messages, at
end
