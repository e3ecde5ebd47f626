-- session_record returns the Record of a session, as it is or, for a new one, as it would be. It is read once in a
-- script; a script that changes it calls touch_session, and save_sessions writes it.
local function parse_session(text)
  if not text then
    return { sequence = 0, activity = 0, token = "", blocked = "", version = 0, state_ms = 0, state_size = 0 }
  end
  local sequence, activity = string.match(text, "^(%d+):(%d+)$")
  if sequence then
    return {
      stored = text, sequence = tonumber(sequence), activity = tonumber(activity), token = "", blocked = "",
      version = 0,
      state_ms = 0, state_size = 0,
    }
  end
  local token, blocked, version, state_ms, state_size
  sequence, activity, token, blocked, version, state_ms, state_size = string.match(text,
    "^(%d+):(%d+):([^:]*):(b?):(%d+):(%d+):(%d+)$")
  return {
    stored = text, sequence = tonumber(sequence), activity = tonumber(activity), token = token, blocked = blocked,
    version = tonumber(version), state_ms = tonumber(state_ms), state_size = tonumber(state_size),
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
