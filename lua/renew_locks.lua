-- renew_locks: set the end of locks that hold to now + LockDuration (LOCK-3, LOCK-5).
-- Reads: entity, locks, locked_expiry.  Writes: locks.
-- Flags: allow-oom
--
-- KEYS[1] entity         hash  options and state of the queue
-- KEYS[2] locks          zset  lock by its end (ms)
-- KEYS[3] locked_expiry  zset  position of locked messages by ExpiresAt (ms)
-- ARGV[1] now            int   0 = server time
-- ARGV[2] sub            str   "" or "dead_": which of the two queues is the source
-- ARGV[3..] lock ...     str   at most 500
--
-- Returns
--   OK                locked_until_ms, then per lock 0 = lost, 1 = renewed, 2 = renewed and expired in hand (TTL-10)
--   ENTITY_NOT_FOUND
-- Cost: O(locks log N)
--@include now_ms
--@include text
--@include touch
--@include rest
--@include lock_parts
local entity, locks, locked_expiry = KEYS[1], KEYS[2], KEYS[3]
local now, sub, wanted = now_ms(ARGV[1]), ARGV[2], rest(ARGV, 3)

local options = redis.call("HMGET", entity, "accessed_ms", "lock_duration_ms")
if not options[1] then
  return { "ENTITY_NOT_FOUND" }
end
local locked_until = now + tonumber(options[2])
local results = { "OK", text(locked_until) }
for i, score in ipairs(redis.call("ZMSCORE", locks, unpack(wanted))) do
  results[i + 2] = 0
  if score and tonumber(score) > now then
    redis.call("ZADD", locks, "XX", locked_until, wanted[i])
    local expires = sub == "" and redis.call("ZSCORE", locked_expiry, (lock_parts(wanted[i])))
    results[i + 2] = expires and tonumber(expires) <= now and 2 or 1
  end
end
touch(entity, options[1], now)
return results
