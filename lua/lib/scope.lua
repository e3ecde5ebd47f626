-- scope tells which session a verb is about: that of a token, or the one that is named; nil for neither. Then it gives the reason
-- why the verb cannot be, if so.
--@include held_session
local function scope(queue, side, token, named)
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
