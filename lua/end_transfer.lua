-- end_transfer: remove the messages of a transfer from their source, which have arrived or were refused (FWD-1, FWD-5, FWD-8).
-- Reads: all.  Writes: all.
-- Flags: allow-oom
--
-- KEYS[1..36] queue       all keys of the queue, in the order of lib/open_queue.lua
-- KEYS[37..72] transfers  the same of its transfer dead-letter queue
-- KEYS[73] owner          entity of a subscription's topic, else as KEYS[1]
-- ARGV[1] now          int  0 = server time
-- ARGV[2] sub          str  "" or "dead_": which of the two queues is the source
-- ARGV[3] incarnation  int  of the queue
-- ARGV[4] number       int  of the transfer
-- ARGV[5..?] per message its position, its fate, the cause in one letter (DLQ-24), reason and description as in dead_letter; the fate is
--            r = removed, k = to the queue's own dead letters, t = to the transfer dead-letter queue
--
-- Returns
--   OK           news transfers_news
--   OVER         this transfer is not under way: nothing was done
--   ENTITY_FULL  actual limit    the transfer dead-letter queue has no room: nothing was done
-- Cost: O(messages log N + bytes moved)
--@include now_ms
--@include text
--@include open_queue
--@include close_queue
--@include set_aside
--@include lock_position
--@include entry_at
--@include remove_entry
--@include bury_entry
--@include give_back
--@include make_transfers
--@include move_to_transfers
local owner = KEYS[73]
local now, sub, incarnation, number = now_ms(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]

local queue = open_queue(KEYS, now)
local values = redis.call("HMGET", KEYS[1], "incarnation", sub .. "transfer")
if not queue or values[1] ~= incarnation or string.match(values[2] or "", "^%d+") ~= number then
  return { "OVER" }
end
local side = sub == "" and queue.main or queue.dead
local fates = {}
for i = 5, #ARGV, 5 do
  local reason, description = ARGV[i + 3], ARGV[i + 4]
  fates[ARGV[i]] = {
    letter = ARGV[i + 1], cause = ARGV[i + 2], reason = reason ~= "" and string.sub(reason, 2) or nil,
    description = description ~= "" and string.sub(description, 2) or nil,
  }
end

local items, more = {}, 0
for _, lock in ipairs(set_aside(side)) do
  local position = lock_position(lock)
  local item = { lock = lock, position = position, fate = fates[position], entry = entry_at(side.log, position) }
  if item.entry and item.fate and item.fate.letter == "t" then
    local longer = string.match(redis.call("HGET", side.modified, position) or "0", "^%-?%d+")
    more = more + string.match(item.entry[1], "%d+$") + longer
  end
  items[#items + 1] = item
end
local transfers
if more > 0 then
  local limit = tonumber(redis.call("HGET", owner, "max_bytes"))
  local actual = more + (redis.call("HGET", KEYS[37], "dead_bytes") or 0)
  if actual > limit then
    return { "ENTITY_FULL", text(actual), text(limit) }
  end
  make_transfers(queue.entity, KEYS[37], text(now))
  transfers = open_queue({ unpack(KEYS, 37, 72) }, now)
end
table.sort(items, function(a, b) return tonumber(a.position) < tonumber(b.position) end)
for _, item in ipairs(items) do
  local fate, entry = item.fate, item.entry
  redis.call("ZREM", side.locks, item.lock)
  if not fate then
    give_back(queue, side, item.position, false, 0) -- it was not among those that were carried
  elseif entry and fate.letter == "t" then
    move_to_transfers(queue, side, transfers, entry, fate)
  elseif entry and fate.letter == "k" then
    local count = redis.call("HGET", side.deliveries, item.position) or "0"
    bury_entry(queue, entry, count, fate.cause, fate.reason, fate.description)
  elseif entry then
    remove_entry(queue, side, entry)
  end
end
redis.call("HDEL", queue.entity, sub .. "transfer")
return { "OK", close_queue(queue), transfers and close_queue(transfers) or "0" }
