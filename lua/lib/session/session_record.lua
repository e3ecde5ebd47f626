-- session_record returns the Record of a session, as it is or, for a new one, as it would be. It is read once in a
-- script; a script that changes it calls touch_session, and save_sessions writes it.
local function parse_session(text)
  local sequence, activity, rest = string.match(text or "0:0", "^(%d+):(%d+)(.*)$")
  local token, blocked, version, state_ms, state_size = string.match(rest == "" and ":::0:0:0" or rest,
    "^:([^:]*):(b?):(%d+):(%d+):(%d+)$")
  return {
    stored = text or nil, sequence = tonumber(sequence), activity = tonumber(activity), token = token,
    blocked = blocked, version = tonumber(version), state_ms = tonumber(state_ms), state_size = tonumber(state_size),
  }
end

local function session_record(queue, session)
  local record = queue.records[session]
  if not record then
    record = parse_session(redis.call("HGET", queue.sessions, session))
    queue.records[session] = record
  end
  return record
end
