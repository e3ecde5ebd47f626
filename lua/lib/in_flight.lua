-- in_flight counts the messages of a session that were handed out in its order and not settled. Deferred ones that were asked for
-- by number do not hold up the rest (DEFER-7).
--@include session_locks_of
local function in_flight(queue, session)
  local count = redis.call("ZLEXCOUNT", queue.main.locks, "[" .. session .. "\0", "(" .. session .. "\1")
  if count == 0 or redis.call("EXISTS", queue.main.deferred) == 0 then
    return count
  end
  local positions = {}
  for i, lock in ipairs(session_locks_of(queue, session)) do
    positions[i] = string.match(string.match(lock, "(%d+):[^:]*$"), "[1-9]%d*$")
  end
  for _, score in ipairs(redis.call("ZMSCORE", queue.main.deferred, unpack(positions))) do
    if score then
      count = count - 1
    end
  end
  return count
end
