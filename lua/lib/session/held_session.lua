-- held_session returns the session that a token holds now (SESS-19, LOCK-7) and the end of its lock; nil when it holds
-- none.
local function held_session(queue, token)
  local session = redis.call("HGET", queue.session_tokens, token)
  local ends = session and tonumber(redis.call("ZSCORE", queue.session_locks, session) or "0")
  if ends and ends > queue.now then
    return session, ends
  end
  return nil
end
