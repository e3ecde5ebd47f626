-- close_session: end the locks of sessions and return what was not settled, uncounted and in its order (SESS-21, DC-3).
-- Reads: all.  Writes: all.
-- Flags: allow-oom
--
-- KEYS[1..41] queue  all keys of the queue, in the order of lib/entity/open_queue.lua
-- ARGV[1] now    int  0 = server time
-- ARGV[2..] token ...  str  at most 64
--
-- Returns
--   OK                notifications, then per token 1 = closed, 0 = it held no session
--   SESSION_NOT_SUPPORTED
--   ENTITY_NOT_FOUND
-- Cost: O(messages in flight log N)
--@include base/now_ms
--@include base/text
--@include session/open_session_queue
--@include entity/close_queue
--@include entity/touch
--@include session/held_session
--@include session/locks_of_session
--@include lock/unlock_together
--@include lock/end_lock
--@include session/end_session
local now = now_ms(ARGV[1])

local queue, refusal = open_session_queue(KEYS, now)
if not queue then
  return refusal
end
touch(queue.entity, now)

local function close(session)
  local items = {}
  for i, lock in ipairs(locks_of_session(queue, session)) do
    items[i] = { lock = lock, position = text(string.match(lock, "(%d+):[^:]*$")), session = session }
  end
  unlock_together(queue, items, false)
  for _, item in ipairs(items) do
    end_lock(queue, queue.main, item, false, 0)
  end
  queue.undecided = nil -- each is decided
  end_session(queue, session)
end

local closed = {}
for i = 2, #ARGV do
  local session = held_session(queue, ARGV[i])
  closed[i - 1] = session and 1 or 0
  if session then
    close(session)
  end
end
return { "OK", close_queue(queue), unpack(closed) }
