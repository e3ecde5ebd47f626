-- write_session formats the record of a session. Most have no holder, no block and no state, and a short form.
local function write_session(record)
  if record.token == "" and record.blocked == "" and record.version == 0 then
    return string.format("%d:%d", record.sequence, record.activity)
  end
  return string.format("%d:%d:%s:%s:%d:%d:%d", record.sequence, record.activity, record.token, record.blocked,
    record.version, record.state_ms, record.state_size)
end
