-- receive_by_number: lock deferred (DEFER-3) or available (PURGE-9) messages with given sequence numbers, all or none. What
-- is past its time is expired instead (TTL-8, TTL-18).
-- Reads: all.  Writes: all.
-- Flags: allow-oom
--
-- KEYS[1..27] queue  all keys of the queue, in the order of lib/open_queue.lua
-- ARGV[1] now         int     0 = server time
-- ARGV[2] sub         str     "" or "dead_": which of the two queues is the source
-- ARGV[3] state       str     deferred or active
-- ARGV[4] nonce       str     what makes these locks different from all others
-- ARGV[5..] number    int     at most 250, each once
--
-- Returns
--   OK                 news locked_until_ms positions deliveries changes
--   MESSAGE_NOT_FOUND  news, then the numbers that cannot be had
--   ENTITY_NOT_FOUND
--   ENTITY_DISABLED    status
-- Cost: O(numbers log N + slice of what is due)
--@include now_ms
--@include rest
--@include open_source
--@include close_queue
--@include find_numbers
--@include take_unlocked
--@include lock_positions
local now, sub, deferred, nonce = now_ms(ARGV[1]), ARGV[2], ARGV[3] == "deferred", ":" .. ARGV[4]
local numbers = rest(ARGV, 5)

local queue, side, refusal = open_source(KEYS, now, sub)
if not queue then
  return refusal
end
local positions, expiries, missing = find_numbers(queue, side, numbers, deferred)
if #missing > 0 then
  return { "MESSAGE_NOT_FOUND", close_queue(queue), unpack(missing) }
end
for i, position in ipairs(positions) do
  take_unlocked(queue.entity, side, position)
  if deferred then
    redis.call("ZADD", side.deferred, "-" .. position, position)
  end
  if expiries[i] > 0 then
    redis.call("ZADD", side.expiry, -expiries[i], position)
  end
end
local locked_until = lock_positions(queue, side, positions, nonce)
local deliveries = redis.call("HMGET", side.deliveries, unpack(positions))
local changes = redis.call("HMGET", side.modified, unpack(positions))
return { "OK", close_queue(queue), locked_until, positions, deliveries, changes }
