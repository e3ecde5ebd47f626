-- put_in_session notes where a message of a session is: see session_member for the letters. With puts the members wait
-- for save_sessions, in a script that puts in many and reads none.
--@include session/session_member
--@include session/touch_session
local function put_in_session(queue, session, letter, position)
  local puts = queue.puts
  if puts then
    puts[#puts + 1], puts[#puts + 2] = 0, session_member(session, letter, position)
  else
    redis.call("ZADD", queue.by_session, 0, session_member(session, letter, position))
  end
  touch_session(queue, session, letter == "a" and "added" or "changed")
end
