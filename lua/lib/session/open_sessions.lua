-- open_sessions adds to a queue what it has when it requires sessions. keys are those of the group queue from
-- by_session on.
local function open_sessions(queue, keys)
  local values = redis.call("HMGET", queue.entity, "session_in_flight", "session_expiry_mode", "session_on_dead_letter",
    "session_state_ttl_ms", "blocked", "expiring")
  queue.in_flight, queue.any_blocked = tonumber(values[1]), values[5] == "1"
  queue.expires_sessions, queue.blocks_sessions = values[2] == "SESSION", values[3] == "BLOCK"
  queue.expiring = values[6] or nil -- see mark_expiring
  queue.state_ttl_ms = tonumber(values[4] or "-1")
  queue.has_sessions, queue.records, queue.touched = true, {}, {}
  queue.main.by_session, queue.by_session = keys[1], keys[1]
  queue.sessions, queue.session_locks, queue.session_tokens = keys[2], keys[3], keys[4]
  queue.session_waiting, queue.ready_sessions, queue.idle_sessions = keys[5], keys[6], keys[7]
  queue.session_states, queue.states_due, queue.delayed = keys[8], keys[9], queue.main.delayed
end
