-- count_set_aside counts the messages that a transfer has set aside on a side.
local function count_set_aside(side)
  return redis.call("ZCOUNT", side.locks, "253402300799000", "253402300799000")
end
