-- unblock lets a session go on that was blocked when one of its messages became a dead letter (SESS-29).
--@include session/session_record
--@include session/touch_session
local function unblock(queue, session)
  local record = session_record(queue, session)
  if record.blocked == "" then
    return
  end
  record.blocked = ""
  redis.call("ZREM", queue.by_session, session .. "\0b")
  -- What an older sidecar blocked is not counted.
  if tonumber(redis.call("HGET", queue.entity, "blocked_sessions") or 0) > 0 then
    redis.call("HINCRBY", queue.entity, "blocked_sessions", -1)
  end
  touch_session(queue, session, "unblocked")
end
