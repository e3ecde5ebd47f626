-- clear_session_state: clear the state of a held session, also when Redis is full (SESS-33, SESS-33a, SESS-33c).
-- Reads: all.  Writes: entity, by_session, sessions, session_states, what is due.
-- Flags: allow-oom
--
-- KEYS[1..41] queue  all keys of the queue, in the order of lib/entity/open_queue.lua
-- ARGV[1] now        str  "<ms>", 0 = server time, or "<ms>;<level>": see lib/entity/lacks_fence.lua
-- ARGV[2] token      str
-- ARGV[3] expected   int  version it must have, 0 = none, -1 = any
--
-- Returns
--   OK                   notifications
--   PRECONDITION_FAILED  notifications version    the one it has
--   SESSION_LOCK_LOST
--   SESSION_NOT_SUPPORTED
--   ENTITY_NOT_FOUND
--   ENTITY_DISABLED      status
--   NEEDS_FENCE     level   the caller must wait for that durability; nothing was done
-- Cost: O(log N + slice of what is due)
--@include base/now_ms
--@include base/text
--@include session/open_held_session
--@include entity/lacks_fence
--@include entity/close_queue
--@include session/session_record
--@include session/touch_session
--@include session/remove_state
local now, awaited = now_ms(ARGV[1])
local token, expected = ARGV[2], tonumber(ARGV[3])

local queue, session, refusal = open_held_session(KEYS, now, token, function(queue)
  return lacks_fence(queue.entity, queue.kind, awaited)
end)
if not queue then
  return refusal
end
local record = session_record(queue, session)
if expected >= 0 and record.version ~= expected then
  return { "PRECONDITION_FAILED", close_queue(queue), text(record.version) }
end
if record.version > 0 then
  remove_state(queue, session, record)
end
record.activity = now
touch_session(queue, session)
return { "OK", close_queue(queue) }
