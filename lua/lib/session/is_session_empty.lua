-- is_session_empty reports whether a free session has no message: at most a state and a block.
local function is_session_empty(queue, session)
  for _, member in ipairs(redis.call("ZRANGE", queue.by_session, "[" .. session .. "\0", "(" .. session .. "\1",
    "BYLEX", "LIMIT", 0, 3)) do
    if #member > #session + 2 then
      return false
    end
  end
  return true
end
