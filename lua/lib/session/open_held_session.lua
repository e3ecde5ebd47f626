-- open_held_session is open_source for a verb that the holder of a session calls. Returns the queue and the session, or
-- as third result the reply that refuses the verb. check may return such a reply too.
--@include entity/open_source
--@include session/held_session
local function open_held_session(keys, now, token, check)
  local session
  local queue, _, refusal = open_source(keys, now, "", function(queue)
    if not queue.has_sessions then
      return { "SESSION_NOT_SUPPORTED" }
    end
    local wrong = check and check(queue)
    session = not wrong and held_session(queue, token)
    return wrong or (not session and { "SESSION_LOCK_LOST" })
  end)
  return queue, session, refusal
end
