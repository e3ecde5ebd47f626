-- receive: lock available messages and hand them out (RECV-2, RECV-8, LOCK-1). What was given back comes first, its
-- numbers are lower; then what nobody has seen yet, which is everything in the log after the cursor.
-- Reads: all.  Writes: entity, ready, locks, expiry, locked_expiry, waiting; what is due.
-- Flags: allow-oom
--
-- KEYS[1]  entity         hash    options and state of the queue
-- KEYS[2]  log            stream  messages of the source, id = position
-- KEYS[3]  ready          zset    position: delivered before and available again
-- KEYS[4]  locks          zset    lock by its end (ms)
-- KEYS[5]  waiting        zset    sidecar by since when it waits (ms)
-- KEYS[6]  deliveries     hash    position -> failed deliveries
-- KEYS[7]  expiry         zset    position of unlocked messages by ExpiresAt (ms)
-- KEYS[8]  locked_expiry  zset    position of locked messages by ExpiresAt (ms)
-- KEYS[9]  dead_log       stream  messages of the dead-letter queue
-- KEYS[10] dead_numbers   zset    dead-letter position by sequence number
-- KEYS[11] dead_waiting   zset    as waiting, of the dead-letter queue
-- ARGV[1] now             int     0 = server time
-- ARGV[2] sub             str     "" or "dead_": which of the two queues is the source
-- ARGV[3] limit           int     most messages to hand out
-- ARGV[4] max_bytes       int     most bytes to hand out, but always one message
-- ARGV[5] nonce           str     makes the locks of this call unlike all others
-- ARGV[6] register_below  int     put the sidecar on the waiting list when fewer than this were found
-- ARGV[7] sidecar         str     who asks
--
-- Returns
--   OK                recheck_ms left locked_until_ms entries deliveries
--                     left = 1: more is available or due, but this call may do no more
--   ENTITY_NOT_FOUND
--   ENTITY_DISABLED   status
-- Cost: O(messages handed out + slice of what is due)
--@include now_ms
--@include text
--@include touch
--@include open_queue
--@include can_receive
--@include clear_slice
--@include expire_entry
--@include average_limit
--@include wake_next
local queue_keys = { KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11] }
local now, sub = now_ms(ARGV[1]), ARGV[2]
local limit, max_bytes, nonce = tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
local register_below, sidecar = tonumber(ARGV[6]), ARGV[7]

local queue = open_queue(queue_keys, sub)
if not queue then
  return { "ENTITY_NOT_FOUND" }
end
if not can_receive(queue.status) then
  return { "ENTITY_DISABLED", queue.status }
end
local _, due = clear_slice(queue, now)

local locked_until = now + queue.lock_duration_ms
local entries, positions, bytes = {}, {}, 0
local lock_args, expiring, expiring_args = {}, {}, {}

-- take hands out one entry, or expires it when its time is over. Returns false when the answer is full.
local function take(entry)
  local position, fields = string.match(entry[1], "^%d+"), entry[2]
  local expires, size = fields[4], tonumber(fields[6])
  local mortal = not queue.dead and expires ~= "0"
  if mortal and tonumber(expires) <= now then
    redis.call("ZREM", queue.expiry, position)
    expire_entry(queue, entry, now)
    return true
  end
  if #entries > 0 and bytes + size > max_bytes then
    return false
  end
  bytes = bytes + size
  entries[#entries + 1] = entry
  positions[#positions + 1] = position
  lock_args[#lock_args + 1] = locked_until
  lock_args[#lock_args + 1] = position .. ":" .. size .. ":" .. nonce
  if mortal then
    expiring[#expiring + 1] = position
    expiring_args[#expiring_args + 1] = expires
    expiring_args[#expiring_args + 1] = position
  end
  return true
end

limit = average_limit(limit, queue.bytes, redis.call("XLEN", queue.log), max_bytes)
local full = false
local given_back = redis.call("ZRANGE", queue.ready, 0, limit - 1)
local taken_back = 0
for i, position in ipairs(given_back) do
  local entry = redis.call("XRANGE", queue.log, position .. "-0", position .. "-0")[1]
  if entry and not take(entry) then
    full = true
    break
  end
  taken_back = i
end
if taken_back > 0 then
  redis.call("ZREM", queue.ready, unpack(given_back, 1, taken_back))
end
local redelivered = #positions

local cursor = queue.cursor
if not full and #entries < limit then
  for _, entry in ipairs(redis.call("XRANGE", queue.log, "(" .. cursor .. "-0", "+", "COUNT", limit - #entries)) do
    if not take(entry) then
      full = true
      break
    end
    cursor = string.match(entry[1], "^%d+")
  end
end

local deliveries = {}
if redelivered > 0 and not queue.dead then
  deliveries = redis.call("HMGET", queue.deliveries, unpack(positions, 1, redelivered))
end
if #entries > 0 then
  redis.call("ZADD", queue.locks, unpack(lock_args))
end
if #expiring > 0 then
  redis.call("ZREM", queue.expiry, unpack(expiring))
  redis.call("ZADD", queue.locked_expiry, unpack(expiring_args))
end
if cursor ~= queue.cursor then
  redis.call("HSET", queue.entity, sub .. "cursor", cursor)
end
touch(queue.entity, queue.accessed_ms, now)
if queue.moved > 0 then
  wake_next(queue.dead_waiting, queue.moved)
end

local available = redis.call("XLEN", queue.log) - redis.call("ZCARD", queue.locks)
if #entries < register_below then
  redis.call("ZADD", queue.waiting, "NX", now, sidecar)
end
if available > 0 and #entries > 0 then
  wake_next(queue.waiting, available)
end

local recheck_ms = math.min(queue.lock_duration_ms, 10000)
local next_end = redis.call("ZRANGE", queue.locks, 0, 0, "WITHSCORES")[2]
if next_end then
  recheck_ms = math.min(recheck_ms, tonumber(next_end) - now)
end
local went_on = #entries >= limit or cursor ~= queue.cursor
local left = (due or full or (available > 0 and went_on)) and 1 or 0
return { "OK", text(math.max(recheck_ms, 1)), left, text(locked_until), entries, deliveries }
