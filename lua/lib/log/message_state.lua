-- message_state returns the state of the message at a position: a = available, l = locked, d = deferred, x = deferred
-- and locked; and when it becomes visible, "0" if it is not delayed.
--@include available/is_fresh
--@include session/session_of
--@include session/session_member
local function message_state(side, position, entry)
  local deferred = redis.call("ZSCORE", side.deferred, position)
  if deferred then
    return tonumber(deferred) > 0 and "d" or "x", "0"
  end
  if side.by_session then
    if redis.call("ZSCORE", side.by_session, session_member(session_of(entry), "a", position)) then
      return "a", "0"
    end
  elseif is_fresh(side, position) or redis.call("ZSCORE", side.ready, position) then
    return "a", "0"
  end
  local visible = redis.call("ZSCORE", side.delayed, position)
  if visible then
    return "a", visible
  end
  return "l", "0"
end
