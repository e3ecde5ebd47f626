-- dead_letter_rest: dead-letter all messages of a session that are neither locked nor scheduled, and unblock it
-- (SESS-29). However many they are, none is handed out after the first call has begun.
-- Reads: all.  Writes: all.
-- Flags: allow-oom
--
-- KEYS[1..41] queue  all keys of the queue, in the order of lib/entity/open_queue.lua
-- ARGV[1] now      str  "<ms>", 0 = server time, or "<ms>;<level>": see lib/entity/lacks_fence.lua
-- ARGV[2] session  str  as it is kept
-- ARGV[3] begun    int  1: an earlier call has begun, and this one goes on
--
-- Returns
--   OK                notifications begun left  begun: 0 = messages are to be ended before, ask again; left: 1 = go on
--   SESSION_NOT_SUPPORTED
--   ENTITY_NOT_FOUND
--   NEEDS_FENCE     level   the caller must wait for that durability; nothing was done
-- Cost: O(log N + slice of what is due)
--@include base/now_ms
--@include session/open_session_queue
--@include entity/lacks_fence
--@include due/clear_due
--@include entity/close_queue
--@include expiry/expire_slice
--@include expiry/expiring_up_to
--@include session/unblock
local now, awaited = now_ms(ARGV[1])
local session, begun = ARGV[2], ARGV[3] == "1"

local queue, refusal = open_session_queue(KEYS, now)
refusal = refusal or lacks_fence(queue.entity, queue.kind, awaited)
if refusal then
  return refusal
end
clear_due(queue)
if not begun and not queue.expiring then
  begun = true
  unblock(queue, session)
  expire_slice(queue, queue.main, session, "d", queue.main.sequence)
end
local left = not begun or expiring_up_to(queue, session, "d")
return { "OK", close_queue(queue), begun and 1 or 0, left and 1 or 0 }
