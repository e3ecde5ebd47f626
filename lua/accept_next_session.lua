-- accept_next_session: take the lock of the session that has been ready longest (SESS-12, SESS-13).
-- Reads: all.  Writes: sessions, session_locks, session_tokens, ready_sessions, waiting, what is due.
-- Flags: allow-oom
--
-- KEYS[1..36] queue  all keys of the queue, in the order of lib/open_queue.lua
-- ARGV[1] now       int  0 = server time
-- ARGV[2] token     str  a new one
-- ARGV[3] register  int  put the sidecar on the waiting list: 0 = no, 1 = if there is no session, 2 = anyway
-- ARGV[4] sidecar   str  its name there
--
-- Returns
--   OK                 news recheck_ms left, then, if there is a session: session locked_until_ms version and the state if any
--                      recheck_ms, left: see receive
--   SESSION_NOT_SUPPORTED
--   INVALID_OPERATION  the queue's AcceptNext forbids it (RR-5)
--   ENTITY_NOT_FOUND
--   ENTITY_DISABLED    status
-- Cost: O(log N + slice of what is due)
--@include now_ms
--@include text
--@include open_source
--@include close_queue
--@include take_session
--@include next_ready
--@include is_behind
--@include recheck_ms
local now, token, register, sidecar = now_ms(ARGV[1]), ARGV[2], tonumber(ARGV[3]), ARGV[4]

local queue, _, refusal = open_source(KEYS, now, "", function(found)
  if not found.has_sessions then
    return { "SESSION_NOT_SUPPORTED" }
  end
  return redis.call("HGET", found.entity, "accept_next") == "FORBIDDEN" and { "INVALID_OPERATION" }
end)
if not queue then
  return refusal
end
local session, more
if not is_behind(queue) then
  session, more = next_ready(queue)
end
local until_ms, record, state
if session then
  until_ms, record = take_session(queue, session, token)
  state = record.version > 0 and redis.call("HGET", queue.session_states, session) or nil
end
if register == 2 or (register == 1 and not session) then
  redis.call("ZADD", queue.main.waiting, "NX", now, sidecar)
end
local left = ((queue.alarm > 0 and queue.alarm <= now) or more) and 1 or 0
local news = close_queue(queue)
local still = session and redis.call("ZCARD", queue.ready_sessions) or 0
if still > 0 then
  wake_next(queue.main.waiting, still)
end
if not session then
  return { "OK", news, recheck_ms(queue), left }
end
return { "OK", news, recheck_ms(queue), left, session, text(until_ms), text(record.version), state }
