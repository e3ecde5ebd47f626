-- begin_transfer: set messages aside to be forwarded, or return those that are already (FWD-1, FWD-6). It returns
-- positions only: the caller reads the messages, which no other caller gets.
-- Reads: all.  Writes: all.
-- Flags: allow-oom
--
-- KEYS[1..41] queue  all keys of the queue, in the order of lib/entity/open_queue.lua
-- ARGV[1] now          int  0 = server time
-- ARGV[2] sub          str  "" or "dead_": which of the two queues is the source
-- ARGV[3] path         str  folded path of the destination, "" = none
-- ARGV[4] destination  str  what the transfer notes of it
-- ARGV[5] limit        int  most messages
-- ARGV[6] max_bytes    int  most bytes, but always one message
-- ARGV[7] nonce        str  what makes these locks different from all others
--
-- Returns
--   OK                  notifications left incarnation age_ms note positions deliveries changes spans
--                       left: 1 = ask again, for there is more than one call clears away; incarnation: of the queue;
--                       note: of the transfer, "<number>:<nonce>:<begun ms>:<destination>", "" = there is nothing to
--                       do; the rest as in receive
--   FORWARDING_CHANGED  notifications    the source does not forward to that path
--   ENTITY_NOT_FOUND
-- Cost: O(messages set aside + slice of what is due)
--@include base/now_ms
--@include base/text
--@include entity/open_queue
--@include due/clear_due
--@include entity/close_queue
--@include answer/is_heavy
--@include answer/even_weight
--@include answer/share_out
--@include available/take_available
--@include transfer/positions_set_aside
--@include answer/values_of
local now, sub, path, destination = now_ms(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]
local limit, max_bytes, nonce = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7]

local queue = open_queue(KEYS, now)
if not queue then
  return { "ENTITY_NOT_FOUND" }
end
local side = sub == "" and queue.main or queue.dead
local values = redis.call("HMGET", queue.entity, "incarnation", sub .. "transfer", sub .. "transfer_number")
local incarnation, note, last = values[1], values[2], tonumber(values[3] or "0")

-- begin sets messages aside. The number is higher than the last one, but a queue that a failover made forget may give
-- one again, which the destination finds out: see lib/transfer/arrived_before.lua.
local function begin()
  local heavy = is_heavy(queue, side, limit > 1 and math.max(1, math.floor(max_bytes / limit)) or 0)
  local old, new, spans, went_on = take_available(queue, side, limit, heavy and function(positions)
    local one, total = { limit = limit, left = max_bytes, is_empty = true }, { left = max_bytes, is_empty = true }
    local _, _, fitting = share_out(side, positions, { one }, total, { even = even_weight(queue, side) })
    return fitting
  end)
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
  old, new, spans = positions_set_aside(side), {}, {}
end
if not note or #old == 0 then -- the latter if keys were changed by hand
  note = nil
  clear_due(queue)
  if not side.forwards or side.by_session or string.lower(side.forwards) ~= path then
    return { "FORWARDING_CHANGED", close_queue(queue) }
  end
  old, new, spans, went_on = begin()
end
local positions = { unpack(old) }
for _, position in ipairs(new) do
  positions[#positions + 1] = position
end
local deliveries, changes = values_of(side.deliveries, old), values_of(side.modified, positions)
local begun = note and string.match(note, "^%d+:%d+:(%d+):")
return {
  "OK", close_queue(queue), not note and went_on and 1 or 0, incarnation,
  text(begun and math.max(0, now - begun) or 0), note or "",
  old, deliveries, changes, spans,
}
