-- get_session_state: read the note kept with a held session (SESS-33, SESS-33a).
-- Reads: all.  Writes: entity, what is due.
-- Flags: allow-oom
--
-- KEYS[1..36] queue  all keys of the queue, in the order of lib/open_queue.lua
-- ARGV[1] now    int  0 = server time
-- ARGV[2] token  str
--
-- Returns
--   OK                news version, then the state if there is one
--   SESSION_LOCK_LOST
--   SESSION_NOT_SUPPORTED
--   ENTITY_NOT_FOUND
--   ENTITY_DISABLED   status
-- Cost: O(log N + slice of what is due)
--@include now_ms
--@include text
--@include open_source
--@include close_queue
--@include held_session
--@include session_record
local now, token = now_ms(ARGV[1]), ARGV[2]

local session
local queue, _, refusal = open_source(KEYS, now, "", function(found)
  session = found.has_sessions and held_session(found, token)
  return not session and { found.has_sessions and "SESSION_LOCK_LOST" or "SESSION_NOT_SUPPORTED" }
end)
if not queue then
  return refusal
end
local news = close_queue(queue)
local version = session_record(queue, session).version
return { "OK", news, text(version), version > 0 and redis.call("HGET", queue.session_states, session) or nil }
