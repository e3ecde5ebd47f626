-- now_ms returns the instant of this script run in ms, from the clock of Redis. Tests pass another instant, or a
-- negative number: how far the clock is behind. If ";" and a level of durability follow, that is the second result: see
-- lib/entity/lacks_fence.
local function now_ms(given)
  local instant, awaited = tonumber(given), nil
  if not instant then
    given, awaited = string.match(given, "^(.*);(.*)$")
    instant = tonumber(given)
  end
  if instant > 0 then
    return instant, awaited
  end
  local time = redis.call("TIME")
  return time[1] * 1000 + math.floor(time[2] / 1000) + instant, awaited
end
