-- delete_by_number: remove messages by sequence number that are neither locked nor scheduled (PURGE-9).
-- Reads: all.  Writes: all.
-- Flags: allow-oom
--
-- KEYS[1..41] queue  all keys of the queue, in the order of lib/entity/open_queue.lua
-- ARGV[1] now       int  0 = server time
-- ARGV[2] sub       str  "" or "dead_": which of the two queues is the source
-- ARGV[3] token     str  of the session they must be in, "" = any
-- ARGV[4..] number  int  at most 250
--
-- Returns
--   OK                notifications, then 1 or 0 per number: removed, or not found
--   ENTITY_NOT_FOUND
--   ENTITY_DISABLED   status
--   SESSION_NOT_SUPPORTED
--   SESSION_LOCK_LOST
-- Cost: O(numbers log N + slice of what is due)
--@include base/now_ms
--@include base/slice
--@include session/open_scope
--@include entity/close_queue
--@include log/position_of
--@include available/take_unlocked
--@include session/session_of
--@include log/entry_at
--@include log/remove_entry
local now, sub, token, numbers = now_ms(ARGV[1]), ARGV[2], ARGV[3], slice(ARGV, 4)

local queue, side, session, refusal = open_scope(KEYS, now, sub, token, "")
if not queue then
  return refusal
end
local results = {}
for i, number in ipairs(numbers) do
  local position = position_of(side, number)
  local entry = position and entry_at(side, position)
  local own = entry and session_of(entry)
  local taken = entry and (not session or own == session) and take_unlocked(queue, side, position, own)
  results[i] = taken and 1 or 0
  if taken then
    remove_entry(queue, side, entry)
  end
end
return { "OK", close_queue(queue), unpack(results) }
