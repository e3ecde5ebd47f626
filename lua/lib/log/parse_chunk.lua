-- parse_chunk parses a member of chunks, "<first>-<bytes>:<last>:<size>,<size>,...", but not its sizes.
local function parse_chunk(member)
  local id, first, bytes, last, sizes = string.match(member, "^((%d+)%-(%d+)):(%d+):(.*)$")
  return { id = id, member = member, first = tonumber(first), last = tonumber(last), bytes = bytes, list = sizes }
end
