-- add_gap notes that the positions first to last, all above the cursor, have nothing to hand out for the first time.
-- Neighbouring gaps become one, and a gap right after the cursor moves it, so there are few.
--@include base/text
local function add_gap(entity, side, first, last)
  local below = redis.call("ZREVRANGEBYSCORE", side.gaps, first, "-inf", "LIMIT", 0, 1)[1]
  if below then
    local from, to = string.match(below, "^(%d+)%-(%d+)$")
    if tonumber(to) == first - 1 then
      redis.call("ZREM", side.gaps, below)
      first = tonumber(from)
    end
  end
  local above = redis.call("ZRANGEBYSCORE", side.gaps, text(last + 1), text(last + 1))[1]
  if above then
    redis.call("ZREM", side.gaps, above)
    last = tonumber(string.match(above, "%d+$"))
  end
  if first == side.cursor + 1 then
    side.cursor = last
    redis.call("HSET", entity, side.prefix .. "cursor", text(last))
  else
    redis.call("ZADD", side.gaps, text(first), text(first) .. "-" .. text(last))
  end
end
