-- count_messages counts the messages of a side or target.
local function count_messages(side)
  return redis.call("XLEN", side.log) + side.chunk_extra
end
