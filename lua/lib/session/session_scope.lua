-- session_scope returns the session that a verb is about: that of a token, or the named one; nil for neither. The
-- second result is why it cannot be, if so.
--@include session/held_session
local function session_scope(queue, side, token, named)
  if token == "" and named == "" then
    return nil, nil
  end
  if not side.by_session then
    return nil, "SESSION_NOT_SUPPORTED"
  end
  if token == "" then
    return named, nil
  end
  local session = held_session(queue, token)
  return session, not session and "SESSION_LOCK_LOST" or nil
end
