-- count_locked counts the messages of a side without sessions whose locks have not ended. Of runs that ended it looks
-- at 200: those behind them count as locked until a sweep has come that far.
--@include base/text
local function count_locked(side, now)
  local count = redis.call("ZCOUNT", side.locks, "(" .. text(now), "+inf") + side.run_messages
  if side.run_messages == 0 then
    return count
  end
  local nonces = redis.call("ZRANGEBYSCORE", side.run_locks, "-inf", now, "LIMIT", 0, 200)
  for _, run in ipairs(#nonces > 0 and redis.call("HMGET", side.runs, unpack(nonces)) or {}) do
    for first, last in string.gmatch(run or "", "(%d+)%-(%d+)") do
      count = count - (last - first + 1)
    end
  end
  return count
end
