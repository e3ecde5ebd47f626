-- begin_resubmission: set dead letters aside to be sent again to another place, or return what a transfer has set
-- aside already (DLQ-22). It returns positions only: the caller reads the messages, which no other caller gets.
-- Reads: all.  Writes: all.
--
-- KEYS[1..41] queue  all keys of the queue, in the order of lib/entity/open_queue.lua
-- ARGV[1] now          int  0 = server time
-- ARGV[2] destination  str  what the transfer notes of it, and how the letters are sent again
-- ARGV[3] max_bytes    int  about how many bytes they may be
-- ARGV[4] nonce        str  what makes these locks different from all others, and this queue if nothing does yet
-- ARGV[5..] number     int  of each letter
--
-- Returns
--   OK                notifications alarm begun looked incarnation age_ms note positions deliveries changes spans
--                     alarm: when a sweeper is to carry it on if the caller does not; begun: 0 = another transfer is
--                     under way; looked: at how many numbers; note: of the transfer, "" = there is nothing to do; the
--                     rest as in begin_transfer
--   ENTITY_NOT_FOUND
--   ENTITY_DISABLED   status
-- Cost: O(letters log N + slice of what is due)
--@include base/now_ms
--@include base/text
--@include entity/open_source
--@include entity/close_queue
--@include transfer/positions_set_aside
--@include log/position_of
--@include log/entry_at
--@include available/is_fresh
--@include lock/hold_expiry
--@include available/take_unlocked
--@include answer/values_of
local now, destination, max_bytes, nonce = now_ms(ARGV[1]), ARGV[2], tonumber(ARGV[3]), ARGV[4]

local queue, dead, refusal = open_source(KEYS, now, "dead_")
if not queue then
  return refusal
end
local values = redis.call("HMGET", queue.entity, "incarnation", "dead_transfer", "dead_transfer_number")
local incarnation, note, last = values[1], values[2], tonumber(values[3] or "0")
if not incarnation then -- a transfer dead-letter queue begins without
  incarnation = nonce
  redis.call("HSET", queue.entity, "incarnation", nonce)
end

-- kind_of returns what an unlocked letter is: "deferred", "available", or nil when it is neither.
local function kind_of(position)
  local place = tonumber(redis.call("ZSCORE", dead.deferred, position) or "0")
  if place > 0 then
    return "deferred"
  end
  local is_free = is_fresh(dead, position) or redis.call("ZSCORE", dead.ready, position)
    or redis.call("ZSCORE", dead.delayed, position)
  return place == 0 and is_free and "available" or nil
end

local positions, looked, begun = {}, 0, 0
if note then
  positions = positions_set_aside(dead)
end
if #positions == 0 then
  local kinds, bytes, locks = {}, 0, {}
  begun, note = 1, nil
  for i = 5, #ARGV do
    local position = position_of(dead, ARGV[i])
    local kind = position and not kinds[position] and kind_of(position)
    local entry = kind and entry_at(dead, position)
    if entry then
      bytes = bytes + string.match(entry[1], "%d+$")
      if #positions > 0 and bytes > max_bytes then
        break
      end
      positions[#positions + 1], kinds[position] = position, kind
    end
    looked = looked + 1
  end
  positions = hold_expiry(queue, dead, positions)
  for _, position in ipairs(positions) do
    take_unlocked(queue, dead, position)
    if kinds[position] == "deferred" then
      redis.call("ZADD", dead.deferred, "-" .. position, position)
    end
    locks[#locks + 1], locks[#locks + 2] = "253402300799000", position .. ":" .. nonce
  end
  if #positions > 0 then
    local number = text(math.max(last + 1, now))
    note = number .. ":" .. nonce .. ":" .. text(now) .. ":" .. destination
    redis.call("ZADD", dead.locks, unpack(locks))
    redis.call("HSET", queue.entity, "dead_transfer", note, "dead_transfer_number", number)
  end
end
table.sort(positions, function(a, b) return tonumber(a) < tonumber(b) end)
local deliveries, changes = values_of(dead.deliveries, positions), values_of(dead.modified, positions)
local since = note and string.match(note, "^%d+:%d+:(%d+):")
return {
  "OK", close_queue(queue), text(now + 5000), begun, looked, incarnation,
  text(since and math.max(0, now - since) or 0), note or "",
  positions, deliveries, changes, {},
}
