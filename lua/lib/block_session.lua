-- block_session locks a session out until somebody has looked into it, because one of its messages became a dead letter, where
-- SessionOnDeadLetter says so (SESS-29).
--@include session_record
--@include touch_session
local function block_session(queue, session)
  if not queue.has_sessions or not queue.blocks_sessions then
    return
  end
  session_record(queue, session).blocked = "b"
  if not queue.any_blocked then
    queue.any_blocked = true
    redis.call("HSET", queue.entity, "blocked", 1) -- so that as long as none was, no receive need ask
  end
  redis.call("ZADD", queue.by_session, 0, session .. "\0b")
  touch_session(queue, session)
end
