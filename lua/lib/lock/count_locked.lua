-- count_locked counts the messages of a side without sessions whose locks have not ended. Of locks that ended it looks
-- at 4000: what is behind them counts as locked if it is in a run.
--@include base/text
local function count_locked(side, now)
  local count = redis.call("ZCOUNT", side.locks, "(" .. text(now), "+inf") + side.locked_more
  if side.locked_more == 0 then
    return count
  end
  local nonces = {}
  for _, lock in ipairs(redis.call("ZRANGEBYSCORE", side.locks, "-inf", now, "LIMIT", 0, 4000)) do
    nonces[#nonces + 1] = string.match(lock, "^:(%d+)$")
  end
  if #nonces == 0 then
    return count
  end
  for _, run in ipairs(redis.call("HMGET", side.runs, unpack(nonces))) do
    count = count + 1
    for first, last in string.gmatch(run or "", "(%d+)%-(%d+)") do
      count = count - (last - first + 1)
    end
  end
  return count
end
