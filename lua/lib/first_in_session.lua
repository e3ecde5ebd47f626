-- first_in_session gives the lowest positions of a session under a letter, at most limit, as they stand in by_session.
--@include session_member
local function first_in_session(queue, session, letter, limit)
  local from = session_member(session, letter)
  return redis.call("ZRANGE", queue.by_session, "[" .. from, "(" .. from .. ":", "BYLEX", "LIMIT", 0, limit)
end
