-- receive: lock available messages (RECV-2, RECV-8, LOCK-1). What was given back comes first, its numbers are lower; then
-- what nobody has seen yet, which is every position after the cursor that is no gap. Their bodies never come
-- here: the caller reads what it now holds with plain XRANGE, which costs a fraction of carrying them through Lua.
-- Reads: all.  Writes: entity, ready, locks, expiry, locked_expiry, waiting; what is due.
-- Flags: allow-oom
--
-- KEYS[1]  entity         hash    options and state of the queue
-- KEYS[2]  log            stream  messages of the source, id = <position>-<size>
-- KEYS[3]  ready          zset    position: delivered before and available again
-- KEYS[4]  locks          zset    lock by its end (ms)
-- KEYS[5]  waiting        zset    sidecar by since when it waits (ms)
-- KEYS[6]  deliveries     hash    position -> failed deliveries
-- KEYS[7]  expiry         zset    position of unlocked messages by ExpiresAt (ms)
-- KEYS[8]  locked_expiry  zset    position of locked messages by ExpiresAt (ms)
-- KEYS[9]  gaps           zset    positions after the cursor whose message is gone
-- KEYS[10] dead_log       stream  messages of the dead-letter queue
-- KEYS[11] dead_numbers   zset    dead-letter position by sequence number
-- KEYS[12] dead_waiting   zset    as waiting, of the dead-letter queue
-- ARGV[1] now             int     0 = server time
-- ARGV[2] sub             str     "" or "dead_": which of the two queues is the source
-- ARGV[3] limit           int     most messages to hand out
-- ARGV[4] max_bytes       int     most bytes to hand out, but always one message
-- ARGV[5] nonce           str     makes the locks of this call unlike all others
-- ARGV[6] register_below  int     put the sidecar on the waiting list when fewer than this were found
-- ARGV[7] sidecar         str     who asks
--
-- Returns
--   OK                recheck_ms left locked_until_ms redelivered deliveries first last
--                     left = 1: more is available or due, but this call may do no more
--                     redelivered: positions, with their failed deliveries; first to last: positions never delivered
--                     before, "0" "0" for none; those in between without an entry are gaps
--   ENTITY_NOT_FOUND
--   ENTITY_DISABLED   status
-- Cost: O(messages handed out + slice of what is due)
--@include now_ms
--@include text
--@include touch
--@include open_queue
--@include can_receive
--@include clear_slice
--@include close_gaps
--@include expire_entry
--@include entry_at
--@include answer_limit
--@include wake_next
local queue_keys = { KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11], KEYS[12] }
local now, sub, limit, max_bytes = now_ms(ARGV[1]), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local nonce, register_below, sidecar = ":" .. ARGV[5], tonumber(ARGV[6]), ARGV[7]

local queue = open_queue(queue_keys, sub)
if not queue then
  return { "ENTITY_NOT_FOUND" }
end
if not can_receive(queue.status) then
  return { "ENTITY_DISABLED", queue.status }
end
local _, due = clear_slice(queue, now)
local cursor = queue.cursor
if not queue.dead then
  close_gaps(queue)
end

limit = answer_limit(queue, limit, max_bytes)
local wanted = redis.call("ZRANGE", queue.ready, 0, limit - 1)
local returned = #wanted
local first, last = queue.cursor + 1, math.min(queue.cursor + limit - returned, queue.sequence)
if first <= last then
  local gaps = {}
  if not queue.dead then
    for _, position in ipairs(redis.call("ZRANGEBYSCORE", queue.gaps, first, last)) do
      gaps[tonumber(position)] = true
    end
  end
  for position = first, last do
    if not gaps[position] then
      wanted[#wanted + 1] = text(position)
    end
  end
end

-- Of those that can expire, what is over goes now (TTL-8) and the rest is not expired while it is locked (TTL-9).
local over = {}
if #wanted > 0 and not queue.dead and redis.call("EXISTS", queue.expiry) == 1 then
  local mortal, locked = {}, {}
  for i, expires in ipairs(redis.call("ZMSCORE", queue.expiry, unpack(wanted))) do
    if expires then
      mortal[#mortal + 1] = wanted[i]
      if tonumber(expires) <= now then
        over[wanted[i]] = true
      else
        locked[#locked + 1] = expires
        locked[#locked + 1] = wanted[i]
      end
    end
  end
  if #mortal > 0 then
    redis.call("ZREM", queue.expiry, unpack(mortal))
  end
  if #locked > 0 then
    redis.call("ZADD", queue.locked_expiry, unpack(locked))
  end
end
if returned > 0 then
  redis.call("ZREM", queue.ready, unpack(wanted, 1, returned))
end
if first <= last then
  queue.cursor = last
  redis.call("HSET", queue.entity, sub .. "cursor", text(last))
  if not queue.dead then
    redis.call("ZREMRANGEBYSCORE", queue.gaps, "-inf", last)
  end
end

local locks, redelivered, found = {}, {}, 0
local locked_until = text(now + queue.lock_duration_ms)
for i, position in ipairs(wanted) do
  if over[position] then
    local entry = entry_at(queue.log, position)
    if entry then
      expire_entry(queue, entry, now)
    end
  else
    found = found + 1
    locks[2 * found - 1], locks[2 * found] = locked_until, position .. nonce
    if i <= returned then
      redelivered[found] = position
    end
  end
end
if found > 0 then
  redis.call("ZADD", queue.locks, unpack(locks))
end
local deliveries = {}
if #redelivered > 0 and not queue.dead then
  deliveries = redis.call("HMGET", queue.deliveries, unpack(redelivered))
end

touch(queue.entity, now)
if queue.moved > 0 then
  wake_next(queue.dead_waiting, queue.moved)
end
local available = redis.call("XLEN", queue.log) - redis.call("ZCARD", queue.locks)
if found < register_below then
  redis.call("ZADD", queue.waiting, "NX", now, sidecar)
end
if available > 0 and found > 0 then
  wake_next(queue.waiting, available)
end

local recheck_ms = math.min(queue.lock_duration_ms, 10000)
local next_end = redis.call("ZRANGE", queue.locks, 0, 0, "WITHSCORES")[2]
if next_end then
  recheck_ms = math.min(recheck_ms, tonumber(next_end) - now)
end
local went_on = #wanted > 0 or queue.cursor > cursor
local left = (due or (available > 0 and went_on)) and 1 or 0
if first > last then
  first, last = 0, 0
end
return { "OK", text(math.max(recheck_ms, 1)), left, locked_until, redelivered, deliveries, text(first), text(last) }
