-- entry_at reads the log entry at a position, nil when it is gone.
local function entry_at(log, position)
  return redis.call("XRANGE", log, position, position)[1]
end
