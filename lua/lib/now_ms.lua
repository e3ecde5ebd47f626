-- now_ms gives the one instant of this script run in milliseconds: the server's clock, or the given one in tests.
local function now_ms(given)
  if given ~= "0" then
    return tonumber(given)
  end
  local time = redis.call("TIME")
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
