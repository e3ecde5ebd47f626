-- end_transfer: remove from their source the messages of a transfer that arrived or were refused (FWD-1, FWD-5,
-- FWD-8).
-- Reads: all.  Writes: all.
-- Flags: allow-oom
--
-- KEYS[1..41] queue       all keys of the queue, in the order of lib/entity/open_queue.lua
-- KEYS[42..82] transfers_queue  the same of its transfer dead-letter queue
-- KEYS[83] owner          entity of a subscription's topic, else as KEYS[1]
-- ARGV[1] now          int  0 = server time
-- ARGV[2] sub          str  "" or "dead_": which of the two queues is the source
-- ARGV[3] incarnation  int  of the queue
-- ARGV[4] id           str  "<number>:<nonce>" of the transfer
-- ARGV[5..?] per message its position, its fate, the cause in one letter (DLQ-24), reason and description as in
--         dead_letter; the fate is r = removed, k = to the queue's own dead letters, t = to the transfer dead-letter
--         queue
--
-- Returns
--   OK           notifications transfers_notifications
--   OVER         this transfer is not under way: nothing was done
--   ENTITY_FULL  actual limit    the transfer dead-letter queue is full: nothing was done
-- Cost: O(messages log N + bytes moved)
--@include base/now_ms
--@include base/text
--@include entity/open_queue
--@include entity/close_queue
--@include transfer/locks_set_aside
--@include lock/position_of_lock
--@include log/entry_at
--@include log/remove_entry
--@include dead_letter/dead_letter_entry
--@include lock/return_message
--@include entity/drop_orphan
--@include transfer/ensure_transfers
--@include transfer/move_to_transfers
local owner = KEYS[83]
local now, sub, incarnation, id = now_ms(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]

local queue = open_queue(KEYS, now)
local values = redis.call("HMGET", KEYS[1], "incarnation", sub .. "transfer")
if not queue or values[1] ~= incarnation or string.match(values[2] or "", "^%d+:%d+") ~= id then
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
for _, lock in ipairs(locks_set_aside(side)) do
  local position = position_of_lock(lock)
  local item = { lock = lock, position = position, fate = fates[position], entry = entry_at(side, position) }
  if item.entry and item.fate and item.fate.letter == "t" then
    local longer = string.match(redis.call("HGET", side.modified, position) or "0", "^%-?%d+")
    more = more + string.match(item.entry[1], "%d+$") + longer
  end
  items[#items + 1] = item
end
local transfers
if more > 0 then
  local limit = tonumber(redis.call("HGET", owner, "max_bytes"))
  local actual = more + (redis.call("HGET", KEYS[42], "dead_bytes") or 0)
  if actual > limit then
    return { "ENTITY_FULL", text(actual), text(limit) }
  end
  local transfer_keys = { unpack(KEYS, 42, 82) }
  open_queue(transfer_keys, now) -- for lib/base/check_key_types
  ensure_transfers(queue.entity, KEYS[42], text(now))
  transfers = open_queue(transfer_keys, now)
end
table.sort(items, function(a, b) return tonumber(a.position) < tonumber(b.position) end)
for _, item in ipairs(items) do
  local fate, entry = item.fate, item.entry
  redis.call("ZREM", side.locks, item.lock)
  if not entry then
    drop_orphan(queue, side, item.position)
  elseif not fate then
    return_message(queue, side, item.position, false, 0) -- it was not among those that were carried
  elseif fate.letter == "t" then
    move_to_transfers(queue, side, transfers, entry, fate)
  elseif fate.letter == "k" then
    local count = redis.call("HGET", side.deliveries, item.position) or "0"
    dead_letter_entry(queue, entry, count, fate.cause, fate.reason, fate.description)
  else
    redis.call("ZREM", side.deferred, item.position) -- a dead letter that was sent again may have been
    remove_entry(queue, side, entry)
  end
end
redis.call("HDEL", queue.entity, sub .. "transfer")
return { "OK", close_queue(queue), transfers and close_queue(transfers) or "0" }
