-- is_fresh reports whether the message at a position was never handed out: it is above the cursor and in no gap.
local function is_fresh(side, position)
  position = tonumber(position)
  if position <= side.cursor or position > side.sequence then
    return false
  end
  local gap = redis.call("ZREVRANGEBYSCORE", side.gaps, position, "-inf", "LIMIT", 0, 1)[1]
  return not gap or tonumber(string.match(gap, "%d+$")) < position
end
