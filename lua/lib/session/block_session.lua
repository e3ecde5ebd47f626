-- block_session blocks the session of a new dead letter, if SessionOnDeadLetter says so, until an operator unblocks it
-- (SESS-29).
--@include session/session_record
--@include session/touch_session
local function block_session(queue, session)
  if not queue.has_sessions or not queue.blocks_sessions then
    return
  end
  session_record(queue, session).blocked = "b"
  if not queue.any_blocked then
    queue.any_blocked = true
    redis.call("HSET", queue.entity, "blocked", 1) -- until one was, no receive looks
  end
  if redis.call("ZADD", queue.by_session, 0, session .. "\0b") == 1 then
    redis.call("HINCRBY", queue.entity, "blocked_sessions", 1)
  end
  touch_session(queue, session)
end
