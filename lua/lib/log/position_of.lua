-- position_of returns the position of a sequence number on a side; nil when no dead letter has the number. On the main
-- side they are the same.
local function position_of(side, number)
  if not side.numbers then
    return number
  end
  return redis.call("ZRANGEBYSCORE", side.numbers, number, number, "LIMIT", 0, 1)[1]
end
