-- parse_chunk parses a member of chunks, "<first>-<bytes>:<last>:<size>,<size>,...", and behind ":" perhaps a group of
-- bodies, but not its sizes.
local function parse_chunk(member)
  local id, first, bytes, last, list, group = string.match(member, "^((%d+)%-(%d+)):(%d+):([^:]*):?(.*)$")
  return { id = id, member = member, first = first + 0, last = last + 0, bytes = bytes, list = list, group = group }
end
