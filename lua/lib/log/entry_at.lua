-- entry_at reads the log entry at a position of a side, nil when it is gone. A message of a chunk looks as if it had an
-- entry of its own.
--@include log/chunk_over
--@include log/messages_of_chunk
local function entry_at(side, position)
  local chunk = chunk_over(side, position)
  if chunk then
    return messages_of_chunk(side, chunk, tonumber(position), tonumber(position))[1]
  end
  return redis.call("XRANGE", side.log, position, position)[1]
end
