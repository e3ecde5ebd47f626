-- open_scope is open_source for a verb that may be limited to a session, by the token of its lock or by its name.
-- Returns queue, side and that session, or as fourth result the reply that refuses the verb.
--@include entity/open_source
--@include session/held_session
local function open_scope(keys, now, sub, token, named, topics_too)
  local session
  local queue, side, refusal = open_source(keys, now, sub, function(queue, side)
    if token == "" and named == "" then
      return nil
    end
    if not side.by_session then
      return { "SESSION_NOT_SUPPORTED" }
    end
    session = token == "" and named or held_session(queue, token)
    return not session and { "SESSION_LOCK_LOST" }
  end, topics_too)
  return queue, side, session, refusal
end
