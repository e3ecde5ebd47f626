-- write_state replaces the state of a session (SESS-33), which counts for size bytes. The script calls save_sessions.
--@include base/text
--@include session/session_record
--@include session/touch_session
local function write_state(queue, session, state, version, size)
  local record = session_record(queue, session)
  local more = size - record.state_size
  record.version = tonumber(version)
  record.state_ms, record.activity, record.state_size = queue.now, queue.now, size
  redis.call("HSET", queue.session_states, session, state)
  redis.call("ZADD", queue.by_session, 0, session .. "\0t")
  redis.call("HINCRBY", queue.entity, "state_bytes", text(more))
  touch_session(queue, session)
end
