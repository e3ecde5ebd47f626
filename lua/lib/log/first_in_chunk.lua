-- first_in_chunk returns the first position of the chunk that a position lies in, "" when it begins it or lies in none.
--@include base/text
--@include log/parse_chunk
local function first_in_chunk(chunks, position)
  local member = redis.call("ZREVRANGEBYSCORE", chunks, text(position), "-inf", "LIMIT", 0, 1)[1]
  local chunk = member and parse_chunk(member)
  return chunk and chunk.first < position and position <= chunk.last and string.match(member, "^%d+") or ""
end
