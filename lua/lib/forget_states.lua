-- forget_states removes at most 100 states of sessions that came to rest SessionStateTtl ago (SESS-33c). A session that has got
-- messages or a holder since is left alone: its state is due anew when it rests again.
--@include session_record
--@include remove_state
--@include touch_session
local function forget_states(queue)
  for _, session in ipairs(redis.call("ZRANGEBYSCORE", queue.states_due, "-inf", queue.now, "LIMIT", 0, 100)) do
    redis.call("ZREM", queue.states_due, session)
    local record = session_record(queue, session)
    local members = redis.call("ZRANGE", queue.by_session, "[" .. session .. "\0", "(" .. session .. "\1", "BYLEX", "LIMIT", 0, 2)
    if record.token == "" and record.version > 0 and #members == 1 then
      remove_state(queue, session, record)
      touch_session(queue, session)
    end
  end
end
