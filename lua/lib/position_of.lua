-- position_of finds the position of a sequence number on a side: the number itself, but for dead letters. Nil when no dead
-- letter has the number.
local function position_of(side, number)
  if not side.numbers then
    return number
  end
  return redis.call("ZRANGEBYSCORE", side.numbers, number, number, "LIMIT", 0, 1)[1]
end
