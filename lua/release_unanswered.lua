-- release_unanswered: release messages of held sessions that were locked by scripts whose answers were lost (SESS-25).
-- Reads: all.  Writes: all.
-- Flags: allow-oom
--
-- KEYS[1..41] queue  all keys of the queue, in the order of lib/entity/open_queue.lua
-- ARGV[1] now             int  0 = server time
-- ARGV[2..] token lock ...     at most 8 times the session's token, and a lock of a message in it or the nonce of all
--                              locks that one script made
--
-- Returns
--   OK                notifications
--   SESSION_NOT_SUPPORTED
--   ENTITY_NOT_FOUND
-- Cost: O(messages in flight in these sessions log N)
--@include base/now_ms
--@include session/open_session_queue
--@include entity/close_queue
--@include session/held_session
--@include session/locks_of_session
--@include lock/settle_locks
--@include lock/return_message
local now = now_ms(ARGV[1])

local queue, refusal = open_session_queue(KEYS, now)
if not queue then
  return refusal
end
for i = 2, #ARGV, 2 do
  local token, wanted = ARGV[i], ARGV[i + 1]
  local session, released = held_session(queue, token), {}
  for _, lock in ipairs(session and locks_of_session(queue, session) or {}) do
    local position, nonce = string.match(lock, "([1-9]%d*):([^:]*)$")
    if wanted == nonce or wanted == position .. ":" .. nonce then
      released[#released + 1] = position .. ":" .. nonce
    end
  end
  if #released > 0 then
    settle_locks(queue, queue.main, released, {}, token, function(position)
      return_message(queue, queue.main, position, false, 0, session)
    end)
  end
end
return { "OK", close_queue(queue) }
