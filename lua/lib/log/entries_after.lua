-- entries_after reads the log entries of a side from a position on, in order, at most limit. A message of a chunk looks
-- as if it had an entry of its own.
--@include log/chunk_over
--@include log/messages_of_chunk
--@include base/text
local function entries_after(side, from, limit)
  local found, position, is_end = {}, tonumber(from), false
  local function add(entries)
    for _, entry in ipairs(entries) do
      found[#found + 1] = #found < limit and entry or nil
    end
  end
  while not is_end and #found < limit and position <= side.chunked do
    local chunk = chunk_over(side, position)
    if chunk then
      add(messages_of_chunk(side, chunk, position, chunk.last))
      position = chunk.last + 1
    else
      local entry = redis.call("XRANGE", side.log, text(position), "+", "COUNT", 1)[1]
      is_end = not entry
      local first = entry and tonumber(string.match(entry[1], "^%d+"))
      if entry and entry[2][3] ~= "z" then
        add({ entry })
        position = first + 1
      elseif entry then
        position = first > position and first or first + 1 -- the latter if chunks was changed by hand
      end
    end
  end
  if not is_end and #found < limit then
    add(redis.call("XRANGE", side.log, text(position), "+", "COUNT", limit - #found))
  end
  return found
end
