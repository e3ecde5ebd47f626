-- end_session takes a session's lock away (SESS-15). What was handed out under it must have been returned.
--@include session/session_record
--@include session/touch_session
--@include wake/wake_holders
local function end_session(queue, session)
  local record = session_record(queue, session)
  redis.call("ZREM", queue.session_locks, session)
  redis.call("HDEL", queue.session_tokens, record.token)
  record.token = ""
  touch_session(queue, session)
  wake_holders(queue, { session }) -- it learns that its lock is gone
  redis.call("SPUBLISH", queue.session_locks .. ":ended", "1 " .. session) -- for those who wait for this very session
end
