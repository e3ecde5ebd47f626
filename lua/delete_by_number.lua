-- delete_by_number: remove messages by sequence number that are neither locked nor scheduled (PURGE-9).
-- Reads: all.  Writes: all.
-- Flags: allow-oom
--
-- KEYS[1..27] queue  all keys of the queue, in the order of lib/open_queue.lua
-- ARGV[1] now       int  0 = server time
-- ARGV[2] sub       str  "" or "dead_": which of the two queues is the source
-- ARGV[3..] number  int  at most 250
--
-- Returns
--   OK                news, then 1 or 0 per number: removed, or not found
--   ENTITY_NOT_FOUND
--   ENTITY_DISABLED   status
-- Cost: O(numbers log N + slice of what is due)
--@include now_ms
--@include rest
--@include open_source
--@include close_queue
--@include position_of
--@include take_unlocked
--@include entry_at
--@include remove_entry
local now, sub, numbers = now_ms(ARGV[1]), ARGV[2], rest(ARGV, 3)

local queue, side, refusal = open_source(KEYS, now, sub)
if not queue then
  return refusal
end
local results = {}
for i, number in ipairs(numbers) do
  local position = position_of(side, number)
  local entry = position and take_unlocked(queue.entity, side, position) and entry_at(side.log, position)
  results[i] = entry and 1 or 0
  if entry then
    remove_entry(queue, side, entry)
  end
end
return { "OK", close_queue(queue), unpack(results) }
