-- oldest_in_sessions returns the lowest available position of a queue with sessions: the first of the log if it is
-- among the first 100 there, else the lowest in the 50 sessions that have been ready longest and the 50 whose locks end
-- first. nil when none of these has any. There is no index over all sessions, and a look at the whole log takes too
-- long.
--@include log/message_state
--@include session/first_in_session
--@include base/text
local function oldest_in_sessions(queue)
  local main, from, bytes = queue.main, "-", 0
  for _ = 1, 10 do
    local entries = redis.call("XRANGE", main.log, from, "+", "COUNT", 10)
    for _, entry in ipairs(entries) do
      local position, size = string.match(entry[1], "^(%d+)%-(%d+)")
      if message_state(main, position, entry) == "a" then
        return position
      end
      bytes = bytes + size
    end
    if #entries < 10 then
      return nil
    end
    from = "(" .. entries[10][1]
    if bytes > 4194304 then
      break
    end
  end
  local oldest
  for _, key in ipairs({ queue.ready_sessions, queue.session_locks }) do
    for _, session in ipairs(redis.call("ZRANGE", key, 0, 49)) do
      for _, letter in ipairs({ "a", "w", "x" }) do
        local member = first_in_session(queue, session, letter, 1)[1]
        local position = member and tonumber(string.sub(member, -16))
        oldest = position and math.min(oldest or position, position) or oldest
      end
    end
  end
  return oldest and text(oldest)
end
