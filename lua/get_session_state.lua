-- get_session_state: read the state of a held session (SESS-33, SESS-33a).
-- Reads: all.  Writes: entity, what is due.
-- Flags: allow-oom
--
-- KEYS[1..41] queue  all keys of the queue, in the order of lib/entity/open_queue.lua
-- ARGV[1] now    int  0 = server time
-- ARGV[2] token  str
--
-- Returns
--   OK                notifications version, then the state and its size if there is one
--   SESSION_LOCK_LOST
--   SESSION_NOT_SUPPORTED
--   ENTITY_NOT_FOUND
--   ENTITY_DISABLED   status
-- Cost: O(log N + slice of what is due)
--@include base/now_ms
--@include base/text
--@include session/open_held_session
--@include entity/close_queue
--@include session/session_record
local now, token = now_ms(ARGV[1]), ARGV[2]

local queue, session, refusal = open_held_session(KEYS, now, token)
if not queue then
  return refusal
end
local notifications = close_queue(queue)
local record = session_record(queue, session)
local state = record.version > 0 and redis.call("HGET", queue.session_states, session) or nil
return { "OK", notifications, text(record.version), state, state and text(record.state_size) }
