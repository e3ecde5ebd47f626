-- forget_chunk forgets a chunk that is not in the log, because another client removed it (docs/decisions/0013).
--@include log/sizes_of_chunk
--@include log/release_bodies
local function forget_chunk(side, chunk)
  sizes_of_chunk(chunk)
  redis.call("ZREM", side.chunks, chunk.member)
  release_bodies(side, chunk.group)
  side.chunk_extra = side.chunk_extra - chunk.left + 1
  redis.call("HINCRBY", side.entity, "chunk_extra", 1 - chunk.left)
end
