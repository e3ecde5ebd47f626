-- locks_set_aside returns the locks of the messages that a transfer has set aside on a side (begin_transfer). They end
-- in the year 9999, so no script ends them.
local function locks_set_aside(side)
  return redis.call("ZRANGEBYSCORE", side.locks, "253402300799000", "253402300799000")
end
