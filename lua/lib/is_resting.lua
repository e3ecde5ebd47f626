-- is_resting says that nothing is left of a session but its state, and maybe a block, and that nobody holds it (SESS-33c).
local function is_resting(queue, session, record)
  local members = record.blocked == "" and 1 or 2
  return record.token == "" and record.version > 0
    and #redis.call("ZRANGE", queue.by_session, "[" .. session .. "\0", "(" .. session .. "\1", "BYLEX", "LIMIT", 0, 3) == members
end
