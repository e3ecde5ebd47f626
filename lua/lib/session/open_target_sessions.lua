-- open_target_sessions adds to a target what it has when it requires sessions. keys are those that a send may change.
--@keys sessions by_session sessions ready_sessions idle_sessions session_waiting delayed states_due
local function open_target_sessions(target, keys)
  target.by_session, target.sessions, target.ready_sessions = keys[1], keys[2], keys[3]
  target.idle_sessions, target.session_waiting, target.delayed = keys[4], keys[5], keys[6]
  target.states_due = keys[7]
  target.records, target.touched, target.state_ttl_ms = {}, {}, -1
end
