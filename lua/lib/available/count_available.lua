-- count_available counts the messages of a side that a receive can hand out now.
local function count_available(side)
  return redis.call("XLEN", side.log) - redis.call("ZCARD", side.locks) - side.run_messages
    - redis.call("ZCARD", side.delayed) - redis.call("ZCOUNT", side.deferred, "(0", "+inf")
end
