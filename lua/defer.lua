-- defer: set locked messages aside until they are received by number (SETTLE-9, DEFER-1, DC-2).
-- Reads: all.  Writes: locks, deferred, expiry, modified.
-- Flags: allow-oom
--
-- KEYS[1..41] queue  all keys of the queue, in the order of lib/entity/open_queue.lua
-- KEYS[42] owner     entity of a subscription's topic, else as KEYS[1]
-- ARGV[1] now    str     "<ms>", 0 = server time, or "<ms>;<level>": see lib/entity/lacks_fence.lua
-- ARGV[2] sub    str     "" or "dead_": which of the two queues is the source
-- ARGV[3] token  str     of the session the messages are in, "" on a source without sessions
-- ARGV[4] count  int     number of locks
-- ARGV[5..] lock ... change ...  str  at most 1000 locks, then nothing or as many changes, "" = none, "!" = refused
--
-- Returns
--   OK                notifications, then per lock 1 done, 0 lost, 2 refused and still locked, 3 session lost
--   ENTITY_NOT_FOUND
--   SESSION_REQUIRED
--   SESSION_NOT_SUPPORTED
--   NEEDS_FENCE     level   the caller must wait for that durability; nothing was done
-- Cost: O(locks log N)
--@include base/now_ms
--@include base/slice
--@include lock/open_for_settling
--@include entity/close_queue
--@include entity/lacks_fence
--@include lock/settle_locks
--@include lock/defer_message
local now, awaited = now_ms(ARGV[1])
local sub, token, count = ARGV[2], ARGV[3], tonumber(ARGV[4])
local wanted, changes = slice(ARGV, 5, 4 + count), slice(ARGV, 5 + count)

local queue, side, refusal = open_for_settling(KEYS, now, sub, token, KEYS[42])
refusal = refusal or lacks_fence(queue.entity, queue.kind, awaited)
if refusal then
  return refusal
end
local results = settle_locks(queue, side, wanted, changes, token, function(position, session)
  defer_message(queue, side, position, session)
end)
return { "OK", close_queue(queue), unpack(results) }
