-- locks_of_session returns the locks of a session's messages, in order of position. A lock is kept as
-- "<session>\0<position, 16 digits>:<nonce>" and ends with the session's.
local function locks_of_session(queue, session)
  return redis.call("ZRANGE", queue.main.locks, "[" .. session .. "\0", "(" .. session .. "\1", "BYLEX")
end
