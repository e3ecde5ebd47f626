-- lock_in_session locks messages of a session for as long as its own lock holds (SESS-18, SESS-26). Returns the end of
-- that lock in ms.
--@include session/session_lock_member
--@include base/text
local function lock_in_session(queue, session, ends, positions, nonce)
  local locks = {}
  for i, position in ipairs(positions) do
    locks[2 * i - 1], locks[2 * i] = 0, session_lock_member(session, position, nonce)
  end
  if #locks > 0 then
    redis.call("ZADD", queue.main.locks, unpack(locks))
  end
  return text(ends)
end
