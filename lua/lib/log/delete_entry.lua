-- delete_entry deletes a log entry of a side that entry_at or entries_after returned.
--@include log/chunk_over
--@include log/sizes_of_chunk
--@include log/save_chunk
local function delete_entry(side, entry)
  local position = tonumber(string.match(entry[1], "^%d+"))
  local chunk = chunk_over(side, position)
  if not chunk then
    redis.call("XDEL", side.log, entry[1])
    return
  end
  sizes_of_chunk(chunk)[position - chunk.first + 1] = false
  chunk.left = chunk.left - 1
  save_chunk(side, chunk)
  if chunk.left > 0 then
    side.chunk_extra = side.chunk_extra - 1
    redis.call("HINCRBY", side.entity, "chunk_extra", -1)
  end
end
