-- purge: remove messages without receiving them, lowest position first, in a bounded slice (PURGE-1, PURGE-2, PURGE-8).
-- Reads: all.  Writes: all.
-- Flags: allow-oom
--
-- KEYS[1..36] queue  all keys of the queue, in the order of lib/open_queue.lua
-- ARGV[1] now     int  0 = server time
-- ARGV[2] sub     str  "" or "dead_": which of the two queues is the source
-- ARGV[3] show    str  available, deferred or scheduled
-- ARGV[4] before  int  only messages enqueued before this instant (ms), 0 = now
-- ARGV[5] after   int  only positions above this
-- ARGV[6] limit   int  most messages to look at
-- ARGV[7] token   str  of the session to purge, "" = see the next
-- ARGV[8] session str  the session to purge, "" = all
--
-- Returns
--   OK                news deleted before last left
--                     last: the last position looked at; left: 1 = there may be more behind it
--   ENTITY_NOT_FOUND
--   ENTITY_DISABLED   status
--   SESSION_NOT_SUPPORTED
--   SESSION_LOCK_LOST
-- Cost: O(limit log N + bytes looked at)
--@include now_ms
--@include text
--@include open_source
--@include close_queue
--@include answer_limit
--@include take_unlocked
--@include scope
--@include session_of
--@include places_in_session
--@include entry_at
--@include remove_entry
--@include remove_scheduled
local now, sub, show, before, after = now_ms(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]
local limit, token, named = tonumber(ARGV[6]), ARGV[7], ARGV[8]

local session
local queue, side, refusal = open_source(KEYS, now, sub, function(queue, side)
  local wrong
  session, wrong = scope(queue, side, token, named)
  return wrong and { wrong }
end)
if not queue then
  return refusal
end
if before == 0 then
  before = now
end
limit = answer_limit(queue, side, math.min(limit, 250), 4194304)
local entries = {}
if session then
  for i, place in ipairs(places_in_session(queue, session, text(after + 1), limit, string.sub(show, 1, 1))) do
    entries[i] = entry_at(place.scheduled and queue.scheduled or side.log, place.position)
  end
elseif show == "deferred" then
  for i, position in ipairs(redis.call("ZRANGEBYSCORE", side.deferred, "(" .. after, "+inf", "LIMIT", 0, limit)) do
    entries[i] = entry_at(side.log, position)
  end
else
  entries = redis.call("XRANGE", show == "scheduled" and queue.scheduled or side.log, text(after + 1), "+", "COUNT", limit)
end
local deleted, last = 0, after
for _, entry in ipairs(entries) do
  local position = string.match(entry[1], "^%d+")
  last = position
  if tonumber(string.match(entry[2][1], "^%d+")) < before then
    if show == "scheduled" then
      remove_scheduled(queue, string.format("%016d", position), false)
      deleted = deleted + 1
    elseif (show == "deferred" or not redis.call("ZSCORE", side.deferred, position))
      and take_unlocked(queue, side, position, session_of(entry)) then
      remove_entry(queue, side, entry)
      deleted = deleted + 1
    end
  end
end
local left = #entries == limit and 1 or 0
return { "OK", close_queue(queue), deleted, text(before), last, left }
