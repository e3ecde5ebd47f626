-- abandon: end locks with one failed delivery more (SETTLE-4, SETTLE-5, SETTLE-11, SETTLE-12, DC-1, DC-7).
-- Reads: all.  Writes: all.
-- Flags: allow-oom
--
-- KEYS[1..41] queue  all keys of the queue, in the order of lib/entity/open_queue.lua
-- KEYS[42] owner     entity of a subscription's topic, else as KEYS[1]
-- ARGV[1] now       str     "<ms>", 0 = server time, or "<ms>;<level>": see lib/entity/lacks_fence.lua
-- ARGV[2] sub       str     "" or "dead_": which of the two queues is the source
-- ARGV[3] delay_ms  int     how long the messages stay invisible, -1 = the queue's RedeliveryDelay
-- ARGV[4] skip      int     1: a delayed message does not hold up those behind it in its session
-- ARGV[5] token     str     of the session the messages are in, "" on a source without sessions
-- ARGV[6] count     int     number of locks
-- ARGV[7..] lock ... change ...  str  at most 1000 locks, then nothing or as many changes, "" = none, "!" = refused
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
--@include lock/return_message
local now, awaited = now_ms(ARGV[1])
local sub, delay_ms, skip = ARGV[2], tonumber(ARGV[3]), ARGV[4] == "1"
local token, count = ARGV[5], tonumber(ARGV[6])
local wanted, changes = slice(ARGV, 7, 6 + count), slice(ARGV, 7 + count)

local queue, side, refusal = open_for_settling(KEYS, now, sub, token, KEYS[42])
refusal = refusal or lacks_fence(queue.entity, queue.kind, awaited)
if refusal then
  return refusal
end
if delay_ms < 0 then
  delay_ms = side == queue.main and queue.redelivery_delay_ms or 0
end
local results = settle_locks(queue, side, wanted, changes, token, function(position, session)
  return_message(queue, side, position, true, now + delay_ms, session, skip)
end)
return { "OK", close_queue(queue), unpack(results) }
