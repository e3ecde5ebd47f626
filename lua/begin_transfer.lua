-- begin_transfer: set messages aside that are to be forwarded, or give those that are already (FWD-1, FWD-6). It gives positions only: the
-- caller reads the messages, which nobody else gets any more.
-- Reads: all.  Writes: all.
-- Flags: allow-oom
--
-- KEYS[1..36] queue  all keys of the queue, in the order of lib/open_queue.lua
-- ARGV[1] now          int  0 = server time
-- ARGV[2] sub          str  "" or "dead_": which of the two queues is the source
-- ARGV[3] path         str  folded path of the destination, "" = none
-- ARGV[4] destination  str  what the transfer notes of it
-- ARGV[5] limit        int  most messages
-- ARGV[6] max_bytes    int  about how many bytes they may be
-- ARGV[7] nonce        str  what makes these locks different from all others
--
-- Returns
--   OK                  news left incarnation age_ms note positions deliveries changes spans
--                       left: 1 = ask again, for there is more than one call clears away; incarnation: of the queue; note: of the transfer,
--                       "<number>:<nonce>:<begun ms>:<destination>", "" = there is nothing to do; the rest as in receive
--   FORWARDING_CHANGED  news    the source does not forward to that path
--   ENTITY_NOT_FOUND
-- Cost: O(messages set aside + slice of what is due)
--@include now_ms
--@include text
--@include open_queue
--@include clear_due
--@include close_queue
--@include answer_limit
--@include take_available
--@include set_aside
--@include lock_position
local now, sub, path, destination = now_ms(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]
local limit, max_bytes, nonce = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7]

local queue = open_queue(KEYS, now)
if not queue then
  return { "ENTITY_NOT_FOUND" }
end
local side = sub == "" and queue.main or queue.dead
local values = redis.call("HMGET", queue.entity, "incarnation", sub .. "transfer", sub .. "transfer_number")
local incarnation, note, last = values[1], values[2], tonumber(values[3] or "0")

-- under_way gives the transfer that was begun before.
local function under_way()
  local positions = {}
  for i, lock in ipairs(set_aside(side)) do
    positions[i] = lock_position(lock)
  end
  table.sort(positions, function(a, b) return tonumber(a) < tonumber(b) end)
  return positions, {}, {}
end

-- begin sets messages aside. The number is never one that was given before, even if a failover made the queue forget the last ones.
local function begin()
  limit = answer_limit(queue, side, limit, max_bytes)
  local old, new, spans, went_on = take_available(queue, side, limit)
  local locks = {}
  for _, positions in ipairs({ old, new }) do
    for _, position in ipairs(positions) do
      locks[#locks + 1], locks[#locks + 2] = "253402300799000", position .. ":" .. nonce
    end
  end
  if #locks == 0 then
    return {}, {}, {}, went_on
  end
  local number = text(math.max(last + 1, now))
  note = number .. ":" .. nonce .. ":" .. text(now) .. ":" .. destination
  redis.call("ZADD", side.locks, unpack(locks))
  redis.call("HSET", queue.entity, sub .. "transfer", note, sub .. "transfer_number", number)
  return old, new, spans, went_on
end

local old, new, spans, went_on
if note then
  old, new, spans = under_way()
end
if not note or #old == 0 then -- the latter if somebody has meddled with the keys
  note = nil
  clear_due(queue)
  if not side.forwards or side.by_session or string.lower(side.forwards) ~= path then
    return { "FORWARDING_CHANGED", close_queue(queue) }
  end
  old, new, spans, went_on = begin()
end
local deliveries, changes, positions = {}, {}, { unpack(old) }
for _, position in ipairs(new) do
  positions[#positions + 1] = position
end
if #old > 0 then
  deliveries = redis.call("HMGET", side.deliveries, unpack(old))
end
if #positions > 0 then
  changes = redis.call("HMGET", side.modified, unpack(positions))
end
local begun = note and string.match(note, "^%d+:%d+:(%d+):")
return {
  "OK", close_queue(queue), not note and went_on and 1 or 0, incarnation, text(begun and math.max(0, now - begun) or 0), note or "",
  old, deliveries, changes, spans,
}
