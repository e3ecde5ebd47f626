-- take_fresh moves the cursor to a position of next_fresh, and over a gap right after it.
--@include base/text
local function take_fresh(entity, side, position)
  local cursor = tonumber(position)
  redis.call("ZREMRANGEBYSCORE", side.gaps, "-inf", position)
  local behind = redis.call("ZRANGEBYSCORE", side.gaps, text(cursor + 1), text(cursor + 1))[1]
  if behind then
    redis.call("ZREM", side.gaps, behind)
    cursor = tonumber(string.match(behind, "%d+$"))
  end
  side.cursor = cursor
  redis.call("HSET", entity, side.prefix .. "cursor", text(cursor))
end
