-- remove_state clears the state of a session and frees its bytes (SESS-33).
--@include base/text
local function remove_state(queue, session, record)
  redis.call("HDEL", queue.session_states, session)
  redis.call("ZREM", queue.by_session, session .. "\0t")
  redis.call("HINCRBY", queue.entity, "state_bytes", text(-record.state_size))
  record.version, record.state_ms, record.state_size = 0, 0, 0
end
