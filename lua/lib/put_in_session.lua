-- put_in_session notes where a message of a session is: see session_member for the letters. A script that puts in many and reads
-- none of them has queue.puts, in which they wait for close_sessions.
--@include session_member
--@include touch_session
local function put_in_session(queue, session, letter, position)
  local puts = queue.puts
  if puts then
    puts[#puts + 1], puts[#puts + 2] = 0, session_member(session, letter, position)
  else
    redis.call("ZADD", queue.by_session, 0, session_member(session, letter, position))
  end
  touch_session(queue, session, letter == "a")
end
