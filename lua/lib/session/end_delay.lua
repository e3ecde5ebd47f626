-- end_delay makes a delayed message of a session available at its place.
--@include session/touch_session
--@include log/entry_at
--@include session/session_of
--@include session/session_member
--@include session/put_in_session
local function end_delay(queue, side, position)
  local entry = entry_at(side, position)
  if not entry then
    return
  end
  local session = session_of(entry)
  redis.call("ZREM", side.by_session, session_member(session, "w", position), session_member(session, "x", position))
  put_in_session(queue, session, "a", position)
  touch_session(queue, session)
end
