-- rests says that of a session that nobody holds nothing is left but, perhaps, its state and a block: no message.
local function rests(queue, session)
  for _, member in ipairs(redis.call("ZRANGE", queue.by_session, "[" .. session .. "\0", "(" .. session .. "\1", "BYLEX", "LIMIT", 0, 3)) do
    if #member > #session + 2 then
      return false
    end
  end
  return true
end
