-- now_ms returns the instant of this script run in ms, from the clock of Redis. Tests pass another instant, or a
-- negative number: how far the clock is behind.
local function now_ms(given)
  local instant = tonumber(given)
  if instant > 0 then
    return instant
  end
  local time = redis.call("TIME")
  return time[1] * 1000 + math.floor(time[2] / 1000) + instant
end
