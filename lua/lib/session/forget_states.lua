-- forget_states removes at most 100 states of sessions that have rested for SessionStateTtl (SESS-33c).
--@include session/session_record
--@include session/remove_state
--@include session/touch_session
local function forget_states(queue)
  for _, session in ipairs(redis.call("ZRANGEBYSCORE", queue.states_due, "-inf", queue.now, "LIMIT", 0, 100)) do
    redis.call("ZREM", queue.states_due, session)
    local record = session_record(queue, session)
    if record.version > 0 then
      remove_state(queue, session, record)
      touch_session(queue, session)
    end
  end
end
