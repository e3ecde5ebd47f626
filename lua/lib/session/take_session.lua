-- take_session locks a free session with a token (SESS-11).
--@include session/session_record
--@include session/touch_session
--@include due/expect
local function take_session(queue, session, token)
  local record = session_record(queue, session)
  local until_ms = queue.now + queue.lock_duration_ms
  record.token = token
  redis.call("ZADD", queue.session_locks, until_ms, session)
  redis.call("HSET", queue.session_tokens, token, session)
  redis.call("ZREM", queue.ready_sessions, session)
  redis.call("ZREM", queue.idle_sessions, session)
  redis.call("ZREM", queue.states_due, session)
  touch_session(queue, session)
  expect(queue, until_ms)
  return until_ms, record
end
