-- complete: remove locked messages for good (SETTLE-3).
-- Reads: locks.  Writes: entity, log, locks, deliveries, locked_expiry, dead_numbers.
-- Flags: allow-oom
--
-- KEYS[1] entity         hash    options and state of the queue
-- KEYS[2] log            stream  messages of the source, id = position
-- KEYS[3] locks          zset    lock by its end (ms)
-- KEYS[4] deliveries     hash    position -> failed deliveries
-- KEYS[5] locked_expiry  zset    position of locked messages by ExpiresAt (ms)
-- KEYS[6] dead_numbers   zset    dead-letter position by sequence number
-- ARGV[1] now            int     0 = server time
-- ARGV[2] sub            str     "" or "dead_": which of the two queues is the source
-- ARGV[3..] lock ...     str     at most 1000
--
-- Returns
--   OK                1 or 0 per lock: done, or lost
--   ENTITY_NOT_FOUND
-- Cost: O(locks)
--@include now_ms
--@include text
--@include touch
--@include rest
--@include live_locks
--@include lock_parts
local entity, log, locks, deliveries, locked_expiry, dead_numbers = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local now, sub, wanted = now_ms(ARGV[1]), ARGV[2], rest(ARGV, 3)

local accessed_ms = redis.call("HGET", entity, "accessed_ms")
if not accessed_ms then
  return { "ENTITY_NOT_FOUND" }
end
local results, held, positions, ids, freed = { "OK" }, {}, {}, {}, 0
for i, live in ipairs(live_locks(locks, wanted, now)) do
  results[i + 1] = live and 1 or 0
  if live then
    local position, size = lock_parts(wanted[i])
    held[#held + 1] = wanted[i]
    positions[#positions + 1] = position
    ids[#ids + 1] = position .. "-0"
    freed = freed + size
  end
end
if #held == 0 then
  return results
end
redis.call("ZREM", locks, unpack(held))
redis.call("XDEL", log, unpack(ids))
if sub == "" then
  redis.call("HDEL", deliveries, unpack(positions))
  redis.call("ZREM", locked_expiry, unpack(positions))
else
  redis.call("ZREM", dead_numbers, unpack(positions))
end
redis.call("HINCRBY", entity, sub .. "bytes", text(-freed))
touch(entity, accessed_ms, now)
return results
