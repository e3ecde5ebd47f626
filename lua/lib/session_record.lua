-- session_record gives what is known of a session beside its messages, as it is or, for a new one, as it would be. It is read
-- once in a script; whoever changes it calls touch_session, and close_sessions writes it.
--   sequence    messages it ever had, MSG-19     activity  when the last one came or the state changed (ms)
--   token       of its holder, "" = nobody       blocked   "b" = SESS-29
--   version, state_ms, state_size                of its state; version 0 = none
local function session_record(queue, session)
  local record = queue.records[session]
  if record then
    return record
  end
  local text = redis.call("HGET", queue.sessions, session)
  if not text then
    record = { sequence = 0, activity = 0, token = "", blocked = "", version = 0, state_ms = 0, state_size = 0 }
  else
    local sequence, activity, more = string.match(text, "^(%d+):(%d+)(.*)$")
    local token, blocked, version, state_ms, state_size = string.match(more, "^:([^:]*):(b?):(%d+):(%d+):(%d+)$")
    record = {
      sequence = tonumber(sequence), activity = tonumber(activity), token = token or "", blocked = blocked or "",
      stored = text, version = tonumber(version or "0"), state_ms = tonumber(state_ms or "0"), state_size = tonumber(state_size or "0"),
    }
  end
  queue.records[session] = record
  return record
end
