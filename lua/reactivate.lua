-- reactivate: make deferred messages available at their old places, all or none (DEFER-8).
-- Reads: all.  Writes: all.
-- Flags: allow-oom
--
-- KEYS[1..27] queue  all keys of the queue, in the order of lib/open_queue.lua
-- ARGV[1] now       int     0 = server time
-- ARGV[2] sub       str     "" or "dead_": which of the two queues is the source
-- ARGV[3..] number  int     at most 250, each once
--
-- Returns
--   OK                 news
--   MESSAGE_NOT_FOUND  news, then the numbers that cannot be had
--   ENTITY_NOT_FOUND
--   ENTITY_DISABLED    status
-- Cost: O(numbers log N + slice of what is due)
--@include now_ms
--@include rest
--@include open_source
--@include close_queue
--@include find_numbers
--@include expect
local now, sub, numbers = now_ms(ARGV[1]), ARGV[2], rest(ARGV, 3)

local queue, side, refusal = open_source(KEYS, now, sub)
if not queue then
  return refusal
end
local positions, expiries, missing = find_numbers(queue, side, numbers, true)
if #missing > 0 then
  return { "MESSAGE_NOT_FOUND", close_queue(queue), unpack(missing) }
end
for i, position in ipairs(positions) do
  redis.call("ZREM", side.deferred, position)
  redis.call("ZADD", side.ready, position, position)
  if expiries[i] > 0 then
    redis.call("ZADD", side.expiry, expiries[i], position)
    expect(queue, expiries[i])
  end
end
side.came = side.came + #positions
return { "OK", close_queue(queue) }
