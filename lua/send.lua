-- send: append messages to a queue (SEND-1). Several calls ride in one: each call is stored whole or not at all
-- (BATCH-1), and one that is refused takes no other with it.
-- Reads: entity, log length.  Writes: entity, log, expiry, waiting.
--
-- KEYS[1] entity   hash    options and state of the queue
-- KEYS[2] log      stream  messages: id <sequence number>-<size>, one field <enqueued>:<expires> with the payload
-- KEYS[3] expiry   zset    sequence number of unlocked messages by ExpiresAt (ms)
-- KEYS[4] waiting  zset    sidecar by since when it waits (ms)
-- ARGV[1] now      int     0 = server time
-- ARGV[2..] per call: count, then per message "<size>" or "<size>:<ttl_ms>", payload
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

-- lifetime_of takes "<size>:<ttl_ms>" apart, the form for messages with a time to live of their own.
local function lifetime_of(head)
  local size, ttl_ms = string.match(head, "^(%d+):(%d+)$")
  return size, tonumber(ttl_ms)
end

-- refusal gives the reason why a call cannot be stored, or nil and its bytes when it can.
local function refusal(first, last, messages)
  local total, count = 0, (last - first + 1) / 2
  for i = first, last, 2 do
    local size = tonumber(ARGV[i]) or tonumber((lifetime_of(ARGV[i])))
    if size > max_message_bytes then
      return { "MESSAGE_SIZE_EXCEEDED", (i - first) / 2, size, max_message_bytes }
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

-- times_of gives the two instants of a message: enqueued and, when it can expire, expires, which goes on the index too.
local function times_of(number, ttl_ms)
  if default_ttl_ms >= 0 and (not ttl_ms or ttl_ms > default_ttl_ms) then
    ttl_ms = default_ttl_ms
  end
  if not ttl_ms or now + ttl_ms > last_instant then
    return text(now) .. ":0"
  end
  local expires = text(now + ttl_ms)
  redis.call("ZADD", expiry, expires, number)
  return text(now) .. ":" .. expires
end

local results, messages, sent, at = { "OK" }, redis.call("XLEN", log), 0, 2
local immortal = default_ttl_ms < 0 and text(now) .. ":0"
while at <= #ARGV do
  local count = tonumber(ARGV[at])
  local first, last = at + 1, at + 2 * count
  local refused, total = refusal(first, last, messages)
  if refused then
    results[#results + 1] = refused
  else
    results[#results + 1] = { "OK", text(sequence + 1) }
    for i = first, last, 2 do
      sequence = sequence + 1
      local number, size = text(sequence), ARGV[i]
      local times = immortal
      if not tonumber(size) or not immortal then
        local own_size, ttl_ms = lifetime_of(size)
        size, times = own_size or size, times_of(number, ttl_ms)
      end
      redis.call("XADD", log, number .. "-" .. size, times, ARGV[i + 1])
    end
    bytes, messages, sent = bytes + total, messages + count, sent + count
  end
  at = last + 1
end
if sent > 0 then
  redis.call("HSET", entity, "sequence", text(sequence), "bytes", text(bytes), "accessed_ms", text(now))
  wake_next(waiting, sent)
end
return results
