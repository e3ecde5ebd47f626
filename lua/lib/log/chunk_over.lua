-- chunk_over returns the chunk that a position of a side lies in, nil when there is none. The message may be gone.
--@include base/text
--@include log/parse_chunk
local function chunk_over(side, position)
  position = tonumber(position)
  if position > side.chunked then
    return nil
  end
  local member = redis.call("ZREVRANGEBYSCORE", side.chunks, text(position), "-inf", "LIMIT", 0, 1)[1]
  local chunk = member and parse_chunk(member)
  return chunk and position <= chunk.last and chunk or nil
end
