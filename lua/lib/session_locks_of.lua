-- session_locks_of gives the locks of all messages handed out from a session and not settled, in order of position. On a queue
-- with sessions a lock is kept as "<session>\0<position, 16 digits>:<nonce>", and ends with the session's.
local function session_locks_of(queue, session)
  return redis.call("ZRANGE", queue.main.locks, "[" .. session .. "\0", "(" .. session .. "\1", "BYLEX")
end
