-- accept_next_session: take the locks of the sessions that have been ready longest (SESS-12, SESS-13). Several calls
-- share one script.
-- Reads: all.  Writes: sessions, session_locks, session_tokens, ready_sessions, waiting, what is due.
-- Flags: allow-oom
--
-- KEYS[1..41] queue  all keys of the queue, in the order of lib/entity/open_queue.lua
-- ARGV[1] now       int  0 = server time
-- ARGV[2] register  int  put the sidecar on the waiting list: 0 = no, 1 = if there are not enough sessions, 2 = anyway
-- ARGV[3] sidecar   str  its name there
-- ARGV[4..] token ...  str  new ones, at most 64
--
-- Returns
--   OK                 notifications recheck_ms left, then for each of the first tokens, as far as there are
--                      sessions, a list of session locked_until_ms version, and if any the state and its size
--                      recheck_ms, left: see receive
--   SESSION_NOT_SUPPORTED
--   INVALID_OPERATION  the queue's AcceptNext forbids it (RR-5)
--   ENTITY_NOT_FOUND
--   ENTITY_DISABLED    status
-- Cost: O(log N + slice of what is due)
--@include wake/wake_next
--@include base/now_ms
--@include base/text
--@include entity/open_source
--@include entity/close_queue
--@include session/take_session
--@include session/next_ready_session
--@include expiry/is_behind
--@include wake/recheck_ms
--@include wake/wait_here
local now, register, sidecar = now_ms(ARGV[1]), tonumber(ARGV[2]), ARGV[3]

local queue, _, refusal = open_source(KEYS, now, "", function(queue)
  if not queue.has_sessions then
    return { "SESSION_NOT_SUPPORTED" }
  end
  return redis.call("HGET", queue.entity, "accept_next") == "FORBIDDEN" and { "INVALID_OPERATION" }
end)
if not queue then
  return refusal
end
local accepted, more = {}, nil
if not is_behind(queue) then
  for i = 4, #ARGV do
    local session
    session, more = next_ready_session(queue)
    if not session then
      break
    end
    local until_ms, record = take_session(queue, session, ARGV[i])
    local state = record.version > 0 and redis.call("HGET", queue.session_states, session) or nil
    accepted[#accepted + 1] = {
      session, text(until_ms), text(record.version), state, state and text(record.state_size),
    }
  end
end
if register == 2 or (register == 1 and #accepted < #ARGV - 3) then
  wait_here(queue.main.waiting, now, sidecar)
end
local left = ((queue.alarm > 0 and queue.alarm <= now) or more) and 1 or 0
local notifications = close_queue(queue)
local still = #accepted > 0 and redis.call("ZCARD", queue.ready_sessions) or 0
if still > 0 then
  wake_next(queue.main.waiting, still, now)
end
return { "OK", notifications, recheck_ms(queue), left, unpack(accepted) }
