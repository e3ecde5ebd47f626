-- is_at_rest says that a session has nothing in by_session and no holder: only its SessionSequence is worth knowing.
local function is_at_rest(queue, session, record)
  return record.token == ""
    and #redis.call("ZRANGE", queue.by_session, "[" .. session .. "\0", "(" .. session .. "\1", "BYLEX", "LIMIT", 0, 1) == 0
end
