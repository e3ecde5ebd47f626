-- scheduled_at reads the entry of a scheduled message, nil when it is gone.
local function scheduled_at(scheduled, number)
  return redis.call("XRANGE", scheduled, number, number)[1]
end
