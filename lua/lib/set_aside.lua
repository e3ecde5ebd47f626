-- set_aside gives the locks of the messages that a transfer has set aside on a side (begin_transfer). They end in the year 9999, so
-- that nothing that deals with locks touches them.
local function set_aside(side)
  return redis.call("ZRANGEBYSCORE", side.locks, "253402300799000", "253402300799000")
end
