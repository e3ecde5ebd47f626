-- release_unanswered: release messages of held sessions that were locked by scripts whose answers were lost (SESS-25).
-- Reads: all.  Writes: all.
-- Flags: allow-oom
--
-- KEYS[1..37] queue  all keys of the queue, in the order of lib/entity/open_queue.lua
-- ARGV[1] now             int  0 = server time
-- ARGV[2..] token nonce ...    the session's token, and what was given as the nonce of its locks
--
-- Returns
--   OK                notifications
--   SESSION_NOT_SUPPORTED
--   ENTITY_NOT_FOUND
-- Cost: O(messages in flight in these sessions log N)
--@include base/now_ms
--@include entity/open_queue
--@include entity/close_queue
--@include session/held_session
--@include session/locks_of_session
--@include lock/settle_locks
--@include lock/return_message
local now = now_ms(ARGV[1])

local queue = open_queue(KEYS, now)
if not queue then
  return { "ENTITY_NOT_FOUND" }
end
if not queue.has_sessions then
  return { "SESSION_NOT_SUPPORTED" }
end
for i = 2, #ARGV, 2 do
  local token, nonce = ARGV[i], ARGV[i + 1]
  local session = held_session(queue, token)
  local locks = {}
  for _, lock in ipairs(session and locks_of_session(queue, session) or {}) do
    local position, its = string.match(lock, "(%d+):([^:]*)$")
    if its == nonce then
      locks[#locks + 1] = string.match(position, "[1-9]%d*$") .. ":" .. nonce
    end
  end
  if #locks > 0 then
    settle_locks(queue, queue.main, locks, {}, token, function(position)
      return_message(queue, queue.main, position, false, 0, session)
    end)
  end
end
return { "OK", close_queue(queue) }
