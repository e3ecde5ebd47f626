-- first_in_session returns the first members of a session under a letter in by_session, at most limit.
--@include session/session_member
local function first_in_session(queue, session, letter, limit)
  local from = session_member(session, letter)
  return redis.call("ZRANGE", queue.by_session, "[" .. from, "(" .. from .. ":", "BYLEX", "LIMIT", 0, limit)
end
