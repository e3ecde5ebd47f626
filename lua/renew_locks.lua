-- renew_locks: set the end of locks that hold to now + LockDuration (LOCK-3, LOCK-5).
-- Reads: entity, locks, expiry.  Writes: entity, locks, runs, run_locks.
-- Flags: allow-oom
--
-- KEYS[1] entity     hash  options and state of the queue
-- KEYS[2] locks      zset  lock by its end (ms)
-- KEYS[3] expiry     zset  position by ExpiresAt (ms), with the sign turned while it is locked
-- KEYS[4] runs       hash  of the main side: nonce -> "<first>-<last>,..." of the messages that share a lock
-- KEYS[5] run_locks  zset  nonce of a run by the end of its lock (ms)
-- ARGV[1] now        int   0 = server time
-- ARGV[2] sub        str   "" or "dead_": which of the two queues is the source
-- ARGV[3] token      str   of a session, "" = none
-- ARGV[4..] lock ...  str   at most 500
--
-- Returns
--   OK                alarm locked_until_ms, then per lock 0 = lost, 1 = renewed, 2 = renewed and expired (TTL-10)
--   ENTITY_NOT_FOUND
--   SESSION_NOT_SUPPORTED
--   INVALID_OPERATION  messages of sessions are locked as long as their session (LOCK-4)
-- Cost: O(locks log N)
--@include base/now_ms
--@include base/text
--@include entity/touch
--@include base/slice
--@include lock/position_of_lock
--@include lock/leave_runs
local entity, locks, expiry = KEYS[1], KEYS[2], KEYS[3]
local now, sub, token, wanted = now_ms(ARGV[1]), ARGV[2], ARGV[3], slice(ARGV, 4)

local options = redis.call("HMGET", entity, "lock_duration_ms", "alarm_ms", "requires_session", "run_messages")
if not options[1] then
  return { "ENTITY_NOT_FOUND" }
end
if options[3] == "1" and sub == "" then
  return { "INVALID_OPERATION" }
end
if token ~= "" then
  return { "SESSION_NOT_SUPPORTED" }
end
redis.call("ZCARD", expiry) -- as in lib/base/check_key_types
redis.call("ZCARD", locks)
if sub == "" then
  local main = { locks = locks, runs = KEYS[4], run_locks = KEYS[5], run_messages = tonumber(options[4] or "0") }
  leave_runs(entity, main, wanted)
end
local locked_until, alarm = now + options[1], "0"
local results, renewed = {}, false
for i, score in ipairs(redis.call("ZMSCORE", locks, unpack(wanted))) do
  results[i] = 0
  if score and tonumber(score) > now then
    renewed = true
    redis.call("ZADD", locks, "XX", locked_until, wanted[i])
    local expires = sub == "" and redis.call("ZSCORE", expiry, position_of_lock(wanted[i]))
    results[i] = expires and -expires <= now and 2 or 1
  end
end
touch(entity, now)
if renewed and locked_until < tonumber(options[2] or "0") then -- LockDuration was made shorter meanwhile
  alarm = text(locked_until)
  redis.call("HSET", entity, "alarm_ms", alarm)
end
return { "OK", alarm, text(locked_until), unpack(results) }
