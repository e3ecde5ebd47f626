-- peek: look at messages in order of sequence number without lock or count (PEEK-1, PEEK-2, PEEK-3, PEEK-7), after doing what
-- is due.
-- Reads: all.  Writes: what is due.
-- Flags: allow-oom
--
-- KEYS[1..36] queue  all keys of the queue or topic, in the order of lib/open_queue.lua
-- ARGV[1] now        int     0 = server time
-- ARGV[2] sub        str     "" or "dead_": which of the two queues is the source
-- ARGV[3] from       int     lowest sequence number
-- ARGV[4] limit      int     most messages to show, of at most 250 that are looked at
-- ARGV[5] max_bytes  int     most bytes to show, but always one message
-- ARGV[6] show       str     letters of the groups to show: a available, l locked, d deferred, s scheduled
-- ARGV[7] token      str     of the session to look at, "" = see the next
-- ARGV[8] session    str     the session to look at, "" = all
--
-- Returns
--   OK                news now_ms next entries deliveries changes groups visible
--                     next: where to go on, "0" = there is no more; entries: id, then fields, in turn; then for each:
--                     failed deliveries, changed properties, its group (x = deferred and locked), when it becomes visible
--                     again (ms, 0 = it is)
--   ENTITY_NOT_FOUND
--   ENTITY_DISABLED   status
--   SESSION_NOT_SUPPORTED
--   SESSION_LOCK_LOST
-- Cost: O(log N + messages looked at)
--@include now_ms
--@include text
--@include open_source
--@include close_queue
--@include answer_limit
--@include entries_from
--@include group_of
--@include scope
local now, sub, from, limit, max_bytes = now_ms(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local show, token, named = ARGV[6], ARGV[7], ARGV[8]

local session
local queue, side, refusal = open_source(KEYS, now, sub, function(queue, side)
  local wrong
  session, wrong = scope(queue, side, token, named)
  return wrong and { wrong }
end, true)
if not queue then
  return refusal
end
local news = close_queue(queue)
-- When only some groups are shown, more must be looked at.
local found, next = entries_from(queue, side, from, answer_limit(queue, side, show == "alds" and limit or 250, max_bytes), show, session)

local entries, deliveries, changes, groups, visible, bytes = {}, {}, {}, {}, {}, 0
for _, item in ipairs(found) do
  local entry = item.entry
  local position, size = string.match(entry[1], "^(%d+)%-(%d+)")
  local group, visible_ms = "s", "0"
  if not item.scheduled then
    group, visible_ms = group_of(side, position, entry)
  end
  if string.find(show, group, 1, true) or (group == "x" and string.find(show, "l", 1, true)) then
    bytes = bytes + size
    if #groups == limit or (#groups > 0 and bytes > max_bytes) then
      next = item.number
      break
    end
    local n = #groups + 1
    entries[2 * n - 1], entries[2 * n], groups[n], visible[n] = entry[1], entry[2], group, visible_ms
    deliveries[n] = not item.scheduled and redis.call("HGET", side.deliveries, position) or "0"
    changes[n] = not item.scheduled and redis.call("HGET", side.modified, position) or ""
  end
end
return { "OK", news, text(now), next, entries, deliveries, changes, groups, visible }
