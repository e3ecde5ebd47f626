-- unblock_session: unblock a session that was blocked when one of its messages became a dead letter (SESS-29).
-- Reads: all.  Writes: by_session, sessions, ready_sessions, what is due.
-- Flags: allow-oom
--
-- KEYS[1..41] queue  all keys of the queue, in the order of lib/entity/open_queue.lua
-- ARGV[1] now      str  "<ms>", 0 = server time, or "<ms>;<level>": see lib/entity/lacks_fence.lua
-- ARGV[2] session  str  as it is kept
--
-- Returns
--   OK                notifications
--   SESSION_NOT_SUPPORTED
--   ENTITY_NOT_FOUND
--   NEEDS_FENCE     level   the caller must wait for that durability; nothing was done
-- Cost: O(log N + slice of what is due)
--@include base/now_ms
--@include session/open_session_queue
--@include entity/lacks_fence
--@include due/clear_due
--@include entity/close_queue
--@include session/unblock
local now, awaited = now_ms(ARGV[1])
local session = ARGV[2]

local queue, refusal = open_session_queue(KEYS, now)
refusal = refusal or lacks_fence(queue.entity, queue.kind, awaited)
if refusal then
  return refusal
end
clear_due(queue)
unblock(queue, session)
return { "OK", close_queue(queue) }
