-- forget_states removes at most 100 states of sessions that came to rest SessionStateTtl ago (SESS-33c).
--@include session_record
--@include remove_state
--@include touch_session
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
