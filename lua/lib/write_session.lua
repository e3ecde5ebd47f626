-- write_session stores the record of a session if it has changed; most have no holder, no block and no state, and so a short
-- one.
--@include text
local function write_session(queue, session, record)
  local value = text(record.sequence) .. ":" .. text(record.activity)
  if record.token ~= "" or record.blocked ~= "" or record.version > 0 then
    value = value .. ":" .. record.token .. ":" .. record.blocked .. ":" .. text(record.version) .. ":" .. text(record.state_ms)
      .. ":" .. text(record.state_size)
  end
  if value ~= record.stored then
    redis.call("HSET", queue.sessions, session, value)
  end
end
