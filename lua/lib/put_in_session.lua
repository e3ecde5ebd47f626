-- put_in_session notes where a message of a session is: see session_member for the letters.
--@include session_member
--@include touch_session
local function put_in_session(queue, session, letter, position)
  redis.call("ZADD", queue.by_session, 0, session_member(session, letter, position))
  touch_session(queue, session, letter == "a")
end
