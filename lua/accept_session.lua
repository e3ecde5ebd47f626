-- accept_session: take the lock of a session by its id, whether it has messages or not (SESS-11).
-- Reads: all.  Writes: sessions, session_locks, session_tokens, ready_sessions, idle_sessions, what is due.
-- Flags: allow-oom
--
-- KEYS[1..41] queue  all keys of the queue, in the order of lib/entity/open_queue.lua
-- ARGV[1] now      int  0 = server time
-- ARGV[2] session  str  as it is kept
-- ARGV[3] token    str  a new one
--
-- Returns
--   OK                        notifications locked_until_ms version, then the state and its size if there is one
--   SESSION_CANNOT_BE_LOCKED  notifications clearing   1 = its lock has ended, but there was too much to clear away:
--                             ask again at once
--   SESSION_NOT_SUPPORTED
--   ENTITY_NOT_FOUND
--   ENTITY_DISABLED           status
-- Cost: O(log N + slice of what is due)
--@include base/now_ms
--@include base/text
--@include entity/open_source
--@include entity/close_queue
--@include session/take_session
--@include session/session_record
local now, session, token = now_ms(ARGV[1]), ARGV[2], ARGV[3]

local queue, _, refusal = open_source(KEYS, now, "", function(queue)
  return not queue.has_sessions and { "SESSION_NOT_SUPPORTED" }
end)
if not queue then
  return refusal
end
local ends = redis.call("ZSCORE", queue.session_locks, session)
if ends or session_record(queue, session).blocked ~= "" then
  return { "SESSION_CANNOT_BE_LOCKED", close_queue(queue), ends and tonumber(ends) <= now and 1 or 0 }
end
local until_ms, record = take_session(queue, session, token)
local state = record.version > 0 and redis.call("HGET", queue.session_states, session) or nil
return { "OK", close_queue(queue), text(until_ms), text(record.version), state, state and text(record.state_size) }
