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
--@include lock_position
local entity, locks, locked_expiry = KEYS[1], KEYS[2], KEYS[3]
local now, sub, wanted = now_ms(ARGV[1]), ARGV[2], rest(ARGV, 3)

local lock_duration_ms = redis.call("HGET", entity, "lock_duration_ms")
if not lock_duration_ms then
  return { "ENTITY_NOT_FOUND" }
end
local locked_until = now + lock_duration_ms
local results = { "OK", text(locked_until) }
for i, score in ipairs(redis.call("ZMSCORE", locks, unpack(wanted))) do
  results[i + 2] = 0
  if score and tonumber(score) > now then
    redis.call("ZADD", locks, "XX", locked_until, wanted[i])
    local position = lock_position(wanted[i])
    local expires = sub == "" and redis.call("ZSCORE", locked_expiry, position)
    results[i + 2] = expires and tonumber(expires) <= now and 2 or 1
  end
end
touch(entity, now)
return results
