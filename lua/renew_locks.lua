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
-- ARGV[4] count      int   number of nonces
-- ARGV[5..?] nonce positions ...  str  for each nonce the positions of its locks in the form of a run, of at most 500
--                          locks in all and none twice
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
--@include lock/position_of_lock
--@include lock/locks_of_run
--@include lock/leave_runs
--@include lock/renew_runs
local entity, locks, expiry = KEYS[1], KEYS[2], KEYS[3]
local now, sub, token, nonces, positions = now_ms(ARGV[1]), ARGV[2], ARGV[3], {}, {}
for i = 1, tonumber(ARGV[4]) do
  nonces[i], positions[i] = ARGV[3 + 2 * i], ARGV[4 + 2 * i]
end

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
local locked_until, alarm = now + options[1], "0"
local main = { locks = locks, runs = KEYS[4], run_locks = KEYS[5], run_messages = tonumber(options[4] or "0") }
local whole, renewed = {}, false
if sub == "" then
  whole, renewed = renew_runs(main, nonces, positions, now, locked_until)
end

-- alone are the locks that are renewed one by one; places has where their results belong.
local results, alone, places = {}, {}, {}
for i, nonce in ipairs(nonces) do
  for _, lock in ipairs(locks_of_run(nonce, positions[i])) do
    results[#results + 1] = whole[i] and 1 or 0
    if not whole[i] then
      alone[#alone + 1], places[#places + 1] = lock, #results
    end
  end
end
if sub == "" then
  leave_runs(entity, main, alone)
end
for i, score in ipairs(#alone > 0 and redis.call("ZMSCORE", locks, unpack(alone)) or {}) do
  if score and tonumber(score) > now then
    renewed = true
    redis.call("ZADD", locks, "XX", locked_until, alone[i])
    local expires = sub == "" and redis.call("ZSCORE", expiry, position_of_lock(alone[i]))
    results[places[i]] = expires and -expires <= now and 2 or 1
  end
end
touch(entity, now)
if renewed and locked_until < tonumber(options[2] or "0") then -- LockDuration was made shorter meanwhile
  alarm = text(locked_until)
  redis.call("HSET", entity, "alarm_ms", alarm)
end
return { "OK", alarm, text(locked_until), unpack(results) }
