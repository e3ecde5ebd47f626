-- average_limit cuts a number of messages so that their bodies, at the queue's average size, stay within a bound: a
-- script must not read a hundred megabytes at once. At least one is always allowed.
local function average_limit(limit, bytes, messages, bound)
  if messages == 0 then
    return limit
  end
  local average = math.max(1, (tonumber(bytes) or 0) / messages)
  return math.max(1, math.min(limit, math.floor(bound / average)))
end
