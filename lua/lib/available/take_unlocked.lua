-- take_unlocked takes the message at a position off the index of available or deferred ones, to be locked or removed.
-- session is its session, on a side with sessions. Returns false when it is locked or gone.
--@include available/is_fresh
--@include available/add_gap
--@include session/session_member
--@include session/touch_session
local function take_unlocked(queue, side, position, session)
  if side.by_session then
    touch_session(queue, session)
    local taken = redis.call("ZREM", side.by_session, session_member(session, "a", position),
      session_member(session, "w", position),
      session_member(session, "x", position), session_member(session, "d", position))
    if taken > 0 then
      redis.call("ZREM", side.delayed, position)
      redis.call("ZREM", side.deferred, position)
    end
    return taken > 0
  end
  if redis.call("ZREM", side.ready, position) + redis.call("ZREM", side.delayed, position) > 0 then
    return true
  end
  local deferred = redis.call("ZSCORE", side.deferred, position)
  if deferred and tonumber(deferred) > 0 then
    redis.call("ZREM", side.deferred, position)
    return true
  end
  if is_fresh(side, position) then
    add_gap(queue.entity, side, tonumber(position), tonumber(position))
    return true
  end
  return false
end
