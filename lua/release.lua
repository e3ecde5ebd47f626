-- release: end locks and count nothing (SETTLE-10, DC-2).
-- Reads: all.  Writes: all.
-- Flags: allow-oom
--
-- KEYS[1..27] queue  all keys of the queue, in the order of lib/open_queue.lua
-- ARGV[1] now        int     0 = server time
-- ARGV[2] sub        str     "" or "dead_": which of the two queues is the source
-- ARGV[3..] lock ...  str     at most 1000
--
-- Returns
--   OK                news, then 1 or 0 per lock: done, or lost
--   ENTITY_NOT_FOUND
-- Cost: O(locks log N)
--@include now_ms
--@include rest
--@include open_queue
--@include close_queue
--@include touch
--@include settle_locks
--@include give_back
local now, sub, wanted = now_ms(ARGV[1]), ARGV[2], rest(ARGV, 3)

local queue = open_queue(KEYS, now)
if not queue then
  return { "ENTITY_NOT_FOUND" }
end
touch(queue.entity, now)
local side = sub == "" and queue.main or queue.dead
local results = settle_locks(queue, side, wanted, {}, function(position)
  give_back(queue, side, position, false, 0)
end)
return { "OK", close_queue(queue), unpack(results) }
