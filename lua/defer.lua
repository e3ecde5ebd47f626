-- defer: set locked messages aside until they are asked for by number (SETTLE-9, DEFER-1, DC-2).
-- Reads: all.  Writes: locks, deferred, expiry, modified.
-- Flags: allow-oom
--
-- KEYS[1..27] queue  all keys of the queue, in the order of lib/open_queue.lua
-- ARGV[1] now    int     0 = server time
-- ARGV[2] sub    str     "" or "dead_": which of the two queues is the source
-- ARGV[3] count  int     number of locks
-- ARGV[4..] lock ... change ...  str  at most 1000 locks, then nothing or as many changes, "" = none, "!" = refused
--
-- Returns
--   OK                news, then per lock 1 done, 0 lost, 2 refused and still locked
--   ENTITY_NOT_FOUND
-- Cost: O(locks log N)
--@include now_ms
--@include rest
--@include open_queue
--@include close_queue
--@include touch
--@include settle_locks
--@include expect
local now, sub, count = now_ms(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local wanted, changes = rest(ARGV, 4, 3 + count), rest(ARGV, 4 + count)

local queue = open_queue(KEYS, now)
if not queue then
  return { "ENTITY_NOT_FOUND" }
end
touch(queue.entity, now)
local side = sub == "" and queue.main or queue.dead
local results = settle_locks(queue, side, wanted, changes, function(position)
  redis.call("ZADD", side.deferred, position, position)
  local expires = redis.call("ZSCORE", side.expiry, position)
  if not expires then
    return
  end
  if side == queue.main and not queue.expire_deferred then
    redis.call("ZREM", side.expiry, position) -- it expires when it is asked for (TTL-18)
  else
    redis.call("ZADD", side.expiry, -expires, position)
    expect(queue, -expires)
  end
end)
return { "OK", close_queue(queue), unpack(results) }
