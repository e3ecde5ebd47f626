-- count_in_flight counts the messages of a session that were handed out in its order and are not settled. Deferred ones
-- that were received by number do not hold up the rest (DEFER-7).
--@include session/locks_of_session
--@include base/in_pieces
local function count_in_flight(queue, session)
  local count = redis.call("ZLEXCOUNT", queue.main.locks, "[" .. session .. "\0", "(" .. session .. "\1")
  if count == 0 or redis.call("EXISTS", queue.main.deferred) == 0 then
    return count
  end
  local positions = {}
  for i, lock in ipairs(locks_of_session(queue, session)) do
    positions[i] = string.match(string.match(lock, "(%d+):[^:]*$"), "[1-9]%d*$")
  end
  in_pieces(positions, function(...)
    for _, score in ipairs(redis.call("ZMSCORE", queue.main.deferred, ...)) do
      if score then
        count = count - 1
      end
    end
  end)
  return count
end
