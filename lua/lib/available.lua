-- available counts the messages of a side that a receive could hand out now.
local function available(side)
  return redis.call("XLEN", side.log) - redis.call("ZCARD", side.locks) - redis.call("ZCARD", side.delayed)
    - redis.call("ZCOUNT", side.deferred, "(0", "+inf")
end
