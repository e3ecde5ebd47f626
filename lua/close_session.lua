-- close_session: end a session's lock and give back what was not settled, uncounted and in its order (SESS-21, DC-3).
-- Reads: all.  Writes: all.
-- Flags: allow-oom
--
-- KEYS[1..36] queue  all keys of the queue, in the order of lib/open_queue.lua
-- ARGV[1] now    int  0 = server time
-- ARGV[2] token  str
--
-- Returns
--   OK                news
--   SESSION_LOCK_LOST
--   SESSION_NOT_SUPPORTED
--   ENTITY_NOT_FOUND
-- Cost: O(messages in flight log N)
--@include now_ms
--@include text
--@include open_queue
--@include close_queue
--@include touch
--@include held_session
--@include session_locks_of
--@include give_back
--@include end_session
local now, token = now_ms(ARGV[1]), ARGV[2]

local queue = open_queue(KEYS, now)
if not queue then
  return { "ENTITY_NOT_FOUND" }
end
if not queue.has_sessions then
  return { "SESSION_NOT_SUPPORTED" }
end
local session = held_session(queue, token)
if not session then
  return { "SESSION_LOCK_LOST" }
end
touch(queue.entity, now)
local locks = session_locks_of(queue, session)
for _, lock in ipairs(locks) do
  redis.call("ZREM", queue.main.locks, lock)
  give_back(queue, queue.main, text(tonumber(string.match(lock, "(%d+):[^:]*$"))), false, 0, session)
end
end_session(queue, session)
return { "OK", close_queue(queue) }
