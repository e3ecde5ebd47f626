-- count_available counts the messages of a side that a receive can hand out now.
--@include log/count_messages
local function count_available(side)
  return count_messages(side) - redis.call("ZCARD", side.locks) - side.run_messages
    - redis.call("ZCARD", side.delayed) - redis.call("ZCOUNT", side.deferred, "(0", "+inf")
end
