-- purge: remove messages without receiving them, lowest position first, in a bounded slice (PURGE-1, PURGE-2, PURGE-8).
-- Reads: all.  Writes: all.
-- Flags: allow-oom
--
-- KEYS[1..41] queue  all keys of the queue, in the order of lib/entity/open_queue.lua
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
--   OK                notifications deleted before last left
--                     last: the last position looked at; left: 1 = there may be more behind it
--   ENTITY_NOT_FOUND
--   ENTITY_DISABLED   status
--   SESSION_NOT_SUPPORTED
--   SESSION_LOCK_LOST
-- Cost: O(limit log N + bytes looked at)
--@include base/now_ms
--@include base/text
--@include session/open_scope
--@include entity/close_queue
--@include answer/reads_at_once
--@include available/take_unlocked
--@include session/session_of
--@include session/places_in_session
--@include log/entry_at
--@include log/entries_after
--@include schedule/scheduled_at
--@include entity/drop_orphan
--@include log/remove_entry
--@include schedule/remove_scheduled
local now, sub, show, before, after = now_ms(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]
local limit, token, named = tonumber(ARGV[6]), ARGV[7], ARGV[8]

local queue, side, session, refusal = open_scope(KEYS, now, sub, token, named)
if not queue then
  return refusal
end
if before == 0 then
  before = now
end

-- next_entries reads the next messages of the group, at most so many, and returns how many it looked at. It drops
-- those that are gone.
local function next_entries(position, most)
  local first, entries, count = text(position + 1), {}, 0
  local function add(place, scheduled)
    local entry
    if scheduled then
      entry = scheduled_at(queue.scheduled, place)
    else
      entry = entry_at(side, place)
    end
    count, entries[#entries + 1] = count + 1, entry
    if not entry then
      drop_orphan(queue, side, place, session, scheduled)
    end
  end
  if session then
    for _, place in ipairs(places_in_session(queue, session, first, most, string.sub(show, 1, 1))) do
      add(place.position, place.scheduled)
    end
  elseif show == "deferred" then
    for _, found in ipairs(redis.call("ZRANGEBYSCORE", side.deferred, first, "+inf", "LIMIT", 0, most)) do
      add(found, false)
    end
  elseif show == "scheduled" then
    entries = redis.call("XRANGE", queue.scheduled, first, "+", "COUNT", most)
    count = #entries
  else
    entries = entries_after(side, first, most)
    count = #entries
  end
  return entries, count
end

local deleted, last, looked, bytes, left = 0, after, 0, 4194304, 1
limit = math.min(limit, 250)
while left == 1 and looked < limit and bytes > 0 do
  local most = reads_at_once(queue, limit - looked, bytes)
  local entries, count = next_entries(last, most)
  for _, entry in ipairs(entries) do
    local position = string.match(entry[1], "^%d+")
    last, bytes = position, bytes - #entry[2][2]
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
  looked, left = looked + count, count == most and 1 or 0
end
return { "OK", close_queue(queue), deleted, text(before), last, left }
