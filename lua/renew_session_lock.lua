-- renew_session_lock: set the end of a session's lock to now + LockDuration, and with it that of all locks under it
-- (SESS-18).
-- Reads: entity, session_locks, session_tokens.  Writes: entity, session_locks.
-- Flags: allow-oom
--
-- KEYS[1] entity          hash  options and state of the queue
-- KEYS[2] session_locks   zset  held session by the end of its lock (ms)
-- KEYS[3] session_tokens  hash  token -> session it holds
-- ARGV[1] now    int  0 = server time
-- ARGV[2] token  str
--
-- Returns
--   OK                 alarm locked_until_ms
--   SESSION_LOCK_LOST
--   SESSION_NOT_SUPPORTED
--   ENTITY_NOT_FOUND
-- Cost: O(log held sessions)
--@include base/now_ms
--@include base/text
--@include entity/touch
--@include session/held_session
local entity, session_locks, session_tokens = KEYS[1], KEYS[2], KEYS[3]
local now, token = now_ms(ARGV[1]), ARGV[2]

local options = redis.call("HMGET", entity, "lock_duration_ms", "alarm_ms", "requires_session")
if not options[1] then
  return { "ENTITY_NOT_FOUND" }
end
if options[3] ~= "1" then
  return { "SESSION_NOT_SUPPORTED" }
end
local session = held_session({ now = now, session_locks = session_locks, session_tokens = session_tokens }, token)
touch(entity, now)
if not session then
  return { "SESSION_LOCK_LOST" }
end
local locked_until, alarm = now + options[1], "0"
redis.call("ZADD", session_locks, locked_until, session)
if locked_until < tonumber(options[2] or "0") then -- LockDuration was made shorter meanwhile
  alarm = text(locked_until)
  redis.call("HSET", entity, "alarm_ms", alarm)
end
return { "OK", alarm, text(locked_until) }
