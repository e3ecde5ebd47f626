-- release: end locks and count nothing (SETTLE-10, DC-2).
-- Reads: all.  Writes: all.
-- Flags: allow-oom
--
-- KEYS[1..41] queue  all keys of the queue, in the order of lib/entity/open_queue.lua
-- ARGV[1] now        int     0 = server time
-- ARGV[2] sub        str     "" or "dead_": which of the two queues is the source
-- ARGV[3] token      str     of the session the messages are in, "" on a source without sessions
-- ARGV[4..] lock ...  str     at most 1000
--
-- Returns
--   OK                notifications, then per lock 1 done, 0 lost, 3 session lost
--   ENTITY_NOT_FOUND
--   SESSION_REQUIRED
--   SESSION_NOT_SUPPORTED
-- Cost: O(locks log N)
--@include base/now_ms
--@include base/slice
--@include lock/open_for_settling
--@include entity/close_queue
--@include lock/settle_locks
--@include lock/return_message
local now, sub, token, wanted = now_ms(ARGV[1]), ARGV[2], ARGV[3], slice(ARGV, 4)

local queue, side, refusal = open_for_settling(KEYS, now, sub, token)
if not queue then
  return refusal
end
local results = settle_locks(queue, side, wanted, {}, token, function(position, session)
  return_message(queue, side, position, false, 0, session)
end)
return { "OK", close_queue(queue), unpack(results) }
