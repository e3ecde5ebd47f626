-- oldest_available returns the lowest available position of a side without sessions, nil when there is none. Of delayed
-- messages it knows the 100 that become visible first.
--@include available/next_fresh
--@include base/text
local function oldest_available(side)
  if side.by_session then
    return nil
  end
  local oldest = tonumber(next_fresh(side, 1)[1])
  local function consider(positions)
    for _, position in ipairs(positions) do
      oldest = math.min(oldest or tonumber(position), tonumber(position))
    end
  end
  consider(redis.call("ZRANGE", side.ready, 0, 0))
  consider(redis.call("ZRANGE", side.delayed, 0, 99))
  return oldest and text(oldest)
end
