-- messages_of_chunk returns the messages of a chunk that are there, from a position to another, each as a log entry of
-- its own. The last chunk that a script read stays at its side, for its payloads never change.
--@include base/text
--@include log/forget_chunk
--@include log/sizes_of_chunk
local function messages_of_chunk(side, chunk, from, last)
  if side.read_id ~= chunk.id then
    side.read_id, side.read_entry = chunk.id, redis.call("XRANGE", side.log, chunk.id, chunk.id)[1]
  end
  if not side.read_entry then
    forget_chunk(side, chunk)
    return {}
  end
  local row, sizes, entries = side.read_entry[2], sizes_of_chunk(chunk), {}
  local origins, place, at = {}, 0, 2 -- origins of copies whose bodies are with the topic
  for length in string.gmatch(row[4] or "", ":(%d+)") do
    local position, size = chunk.first + place, sizes[place + 1]
    if size and position >= from and position <= last then
      entries[#entries + 1] = { text(position) .. "-" .. size, { row[1], string.sub(row[2], at, at + length - 1) } }
      origins[#entries] = chunk.group ~= "" and length or nil
    end
    place, at = place + 1, at + length
  end
  for i, body in ipairs(#origins > 0 and redis.call("HMGET", side.bodies, unpack(origins)) or {}) do
    entries[i][2] = { row[1], body or "", "e", origins[i] }
  end
  return entries
end
