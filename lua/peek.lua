-- peek: read messages in order of sequence number without lock or count (PEEK-1, PEEK-2, PEEK-3, PEEK-7), after doing
-- what is due.
-- Reads: all.  Writes: what is due.
-- Flags: allow-oom
--
-- KEYS[1..41] queue  all keys of the queue or topic, in the order of lib/entity/open_queue.lua
-- ARGV[1] now        int     0 = server time
-- ARGV[2] sub        str     "" or "dead_": which of the two queues is the source
-- ARGV[3] from       int     lowest sequence number
-- ARGV[4] limit      int     most messages to show, of at most 250 that are looked at
-- ARGV[5] max_bytes  int     most bytes to show, but always one message, unless there is a "+" before them
-- ARGV[6] show       str     letters of the groups to show: a available, l locked, d deferred, s scheduled
-- ARGV[7] token      str     of the session to look at, "" = see the next
-- ARGV[8] session    str     the session to look at, "" = all
--
-- Returns
--   OK                notifications now_ms next entries deliveries changes groups visible
--                     next: where to go on, "0" = there is no more, below 0 = the one at that number does not fit;
--                     entries: id, then fields, in turn; then for each: failed deliveries, changed properties, its
--                     group (x = deferred and locked), when it becomes visible again (ms, 0 = it is)
--   ENTITY_NOT_FOUND
--   ENTITY_DISABLED   status
--   SESSION_NOT_SUPPORTED
--   SESSION_LOCK_LOST
-- Cost: O(log N + messages looked at)
--@include base/now_ms
--@include base/text
--@include session/open_scope
--@include entity/close_queue
--@include answer/reads_at_once
--@include answer/weigh_entry
--@include log/entries_from
--@include log/message_state
local now, sub, from, limit, max_bytes = now_ms(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local show, token, named, must = ARGV[6], ARGV[7], ARGV[8], string.byte(ARGV[5]) ~= 43

local queue, side, session, refusal = open_scope(KEYS, now, sub, token, named, true)
if not queue then
  return refusal
end
local notifications = close_queue(queue)
queue.orphans = nil -- those are among the notifications
local entries, deliveries, changes, groups, visible = {}, {}, {}, {}, {}
local next, looked, left, is_full = from, 0, max_bytes, false

-- show_one adds a message to the answer if it is to be shown. It reports whether it fits.
local function show_one(item)
  local entry = item.entry
  local position = string.match(entry[1], "^%d+")
  local group, visible_ms = "s", "0"
  if not item.scheduled then
    group, visible_ms = message_state(side, position, entry)
  end
  if not string.find(show, group, 1, true) and (group ~= "x" or not string.find(show, "l", 1, true)) then
    return true
  end
  local weight = weigh_entry(side, position, entry)
  if weight > left and (not must or #groups > 0) then
    return false
  end
  left = left - weight
  local n = #groups + 1
  entries[2 * n - 1], entries[2 * n], groups[n], visible[n] = entry[1], entry[2], group, visible_ms
  deliveries[n] = not item.scheduled and redis.call("HGET", side.deliveries, position) or "0"
  changes[n] = not item.scheduled and redis.call("HGET", side.modified, position) or ""
  return true
end

local bytes = 2 * max_bytes -- to look at, also when little of it is shown
repeat
  local found
  local most = reads_at_once(queue, show == "alds" and limit - #groups or 250 - looked, bytes)
  found, next = entries_from(queue, side, next, most, show, session)
  for _, item in ipairs(found) do
    looked, bytes = looked + 1, bytes - #item.entry[2][2]
    if #groups == limit then
      next = item.number
      break
    end
    if not show_one(item) then
      next, is_full = "-" .. item.number, true
      break
    end
  end
until is_full or next == "0" or #groups == limit or looked >= 250 or bytes <= 0
return { "OK", notifications .. (queue.orphans or ""), text(now), next, entries, deliveries, changes, groups, visible }
