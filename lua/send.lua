-- send: append messages to a queue (SEND-1). Several calls ride in one: each call is stored whole or not at all
-- (BATCH-1), and one that is refused takes no other with it.
-- Reads: entity, log length.  Writes: entity, log, expiry, waiting.
--
-- KEYS[1] entity   hash    options and state of the queue
-- KEYS[2] log      stream  messages: id <sequence number>-<size>, one field <enqueued>:<expires> with the payload
-- KEYS[3] expiry   zset    sequence number of unlocked messages by ExpiresAt (ms)
-- KEYS[4] waiting  zset    sidecar by since when it waits (ms)
-- ARGV[1] now      int     0 = server time
-- ARGV[2..] per call: count, then per message: size, ttl_ms (-1 = none given), payload
--
-- Returns
--   OK  one list per call, each one of
--         OK first_sequence_number
--         MESSAGE_SIZE_EXCEEDED index actual limit  (index -1: the batch)
--         ENTITY_DISABLED status
--         ENTITY_FULL what actual limit dead_bytes
--         INTERNAL
--   ENTITY_NOT_FOUND
-- Cost: O(messages)
--@include now_ms
--@include text
--@include wake_next
local entity, log, expiry, waiting = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local now = now_ms(ARGV[1])

local options = redis.call("HMGET", entity, "status", "max_message_bytes", "max_batch_bytes", "max_bytes",
  "max_message_count", "default_ttl_ms", "sequence", "bytes", "dead_bytes")
if not options[1] then
  return { "ENTITY_NOT_FOUND" }
end
local status = options[1]
local max_message_bytes, max_batch_bytes = tonumber(options[2]), tonumber(options[3])
local max_bytes, max_message_count = tonumber(options[4]), tonumber(options[5])
local default_ttl_ms = tonumber(options[6])
local sequence, bytes = tonumber(options[7] or "0"), tonumber(options[8] or "0")
local dead_bytes = tonumber(options[9] or "0")
local last_sequence, last_instant = 9007199254740991, 253402300799999

-- refusal gives the reason why a call cannot be stored, nil when it can.
local function refusal(first, count, messages)
  local total = 0
  for i = 0, count - 1 do
    local size = tonumber(ARGV[first + 3 * i])
    if size > max_message_bytes then
      return { "MESSAGE_SIZE_EXCEEDED", i, size, max_message_bytes }
    end
    total = total + size
  end
  if count > 1 and total > max_batch_bytes then
    return { "MESSAGE_SIZE_EXCEEDED", -1, total, max_batch_bytes }
  end
  if status == "DISABLED" or status == "SEND_DISABLED" then
    return { "ENTITY_DISABLED", status }
  end
  if bytes + dead_bytes + total > max_bytes then
    return { "ENTITY_FULL", "bytes", bytes + dead_bytes + total, max_bytes, dead_bytes }
  end
  if max_message_count > 0 and messages + count > max_message_count then
    return { "ENTITY_FULL", "messages", messages + count, max_message_count, dead_bytes }
  end
  if sequence + count > last_sequence then
    return { "INTERNAL" }
  end
  return nil, total
end

local results, messages, at = { "OK" }, redis.call("XLEN", log), 2
local enqueued, sent = text(now) .. ":", 0
local immortal = enqueued .. "0"
while at <= #ARGV do
  local count = tonumber(ARGV[at])
  local first = at + 1
  local refused, total = refusal(first, count, messages)
  if refused then
    results[#results + 1] = refused
  else
    results[#results + 1] = { "OK", text(sequence + 1) }
    for i = first, first + 3 * count - 1, 3 do
      sequence = sequence + 1
      local number, times = text(sequence), immortal
      local ttl_ms = tonumber(ARGV[i + 1])
      if default_ttl_ms >= 0 and (ttl_ms < 0 or ttl_ms > default_ttl_ms) then
        ttl_ms = default_ttl_ms
      end
      if ttl_ms >= 0 and now + ttl_ms <= last_instant then
        local expires = text(now + ttl_ms)
        redis.call("ZADD", expiry, expires, number)
        times = enqueued .. expires
      end
      redis.call("XADD", log, number .. "-" .. ARGV[i], times, ARGV[i + 2])
    end
    bytes, messages, sent = bytes + total, messages + count, sent + count
  end
  at = first + 3 * count
end
if sent > 0 then
  redis.call("HSET", entity, "sequence", text(sequence), "bytes", text(bytes), "accessed_ms", text(now))
  wake_next(waiting, sent)
end
return results
