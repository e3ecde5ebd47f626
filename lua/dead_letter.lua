-- dead_letter: move locked messages of the main queue to its dead-letter queue (SETTLE-6, DLQ-12, DLQ-16, DLQ-17).
-- Reads: all.  Writes: all.
-- Flags: allow-oom
--
-- KEYS[1..41] queue  all keys of the queue, in the order of lib/entity/open_queue.lua
-- KEYS[42] owner     entity of a subscription's topic, else as KEYS[1]
-- ARGV[1] now          str  "<ms>", 0 = server time, or "<ms>;<level>": see lib/entity/lacks_fence.lua
-- ARGV[2] reason       str  "=" and the text of the application, or "" for none (SETTLE-7)
-- ARGV[3] description  str  as reason
-- ARGV[4] token        str  of the session the messages are in, "" on a source without sessions
-- ARGV[5] count        int  number of locks
-- ARGV[6..] lock ... change ...  str  at most 1000 locks, then nothing or as many changes, "" = none, "!" = refused
--
-- Returns
--   OK                notifications, then per lock 1 done, 0 lost, 2 refused and still locked, 3 session lost
--   ENTITY_NOT_FOUND
--   SESSION_REQUIRED
--   SESSION_NOT_SUPPORTED
--   NEEDS_FENCE     level   the caller must wait for that durability; nothing was done
-- Cost: O(locks log N + bytes moved)
--@include base/now_ms
--@include base/slice
--@include lock/open_for_settling
--@include entity/close_queue
--@include entity/lacks_fence
--@include lock/settle_locks
--@include dead_letter/dead_letter_unlocked
local now, awaited = now_ms(ARGV[1])
local token, count = ARGV[4], tonumber(ARGV[5])
local reason = ARGV[2] ~= "" and string.sub(ARGV[2], 2) or nil
local description = ARGV[3] ~= "" and string.sub(ARGV[3], 2) or nil
local wanted, changes = slice(ARGV, 6, 5 + count), slice(ARGV, 6 + count)

local queue, main, refusal = open_for_settling(KEYS, now, "", token, KEYS[42])
refusal = refusal or lacks_fence(queue.entity, queue.kind, awaited)
if refusal then
  return refusal
end
local results = settle_locks(queue, main, wanted, changes, token, function(position)
  dead_letter_unlocked(queue, position, reason, description)
end)
return { "OK", close_queue(queue), unpack(results) }
