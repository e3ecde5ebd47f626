-- peek: look at messages in order of sequence number without lock or count (PEEK-1, PEEK-2, PEEK-3), after doing what is due.
-- Reads: all.  Writes: what is due.
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
-- ARGV[3] from            int     lowest sequence number
-- ARGV[4] limit           int     most messages to show
-- ARGV[5] max_bytes       int     most bytes to show, but always one message
--
-- Returns
--   OK                now_ms left entries deliveries locked
--                     left = 1: there may be more within max_bytes; entries: id, then fields, in turn; deliveries: failed deliveries per entry of the main queue; locked: 1 or 0 per entry
--   ENTITY_NOT_FOUND
--   ENTITY_DISABLED   status
-- Cost: O(log N + messages shown)
--@include now_ms
--@include text
--@include touch
--@include open_queue
--@include can_receive
--@include clear_slice
--@include entry_at
--@include answer_limit
--@include wake_next
local queue_keys = { KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11], KEYS[12] }
local now, sub, from, limit, max_bytes = now_ms(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])

local queue = open_queue(queue_keys, sub)
if not queue then
  return { "ENTITY_NOT_FOUND" }
end
if not can_receive(queue.status) then
  return { "ENTITY_DISABLED", queue.status }
end
local returned = clear_slice(queue, now)
touch(queue.entity, now)
if returned > 0 then
  wake_next(queue.waiting, returned)
end
if queue.moved > 0 then
  wake_next(queue.dead_waiting, queue.moved)
end

local asked = limit
limit = answer_limit(queue, limit, max_bytes)
local found = {}
if queue.dead then
  for i, position in ipairs(redis.call("ZRANGEBYSCORE", queue.dead_numbers, from, "+inf", "LIMIT", 0, limit)) do
    found[i] = entry_at(queue.log, position)
  end
else
  found = redis.call("XRANGE", queue.log, from, "+", "COUNT", limit)
end
if #found == 0 then
  return { "OK", text(now), 0, {}, {}, {} }
end

local entries, positions, bytes, full = {}, {}, 0, false
for i, entry in ipairs(found) do
  local position, size = string.match(entry[1], "^(%d+)%-(%d+)")
  bytes = bytes + size
  if i > 1 and bytes > max_bytes then
    full = true
    break
  end
  entries[2 * i - 1], entries[2 * i] = entry[1], entry[2]
  positions[i] = position
end

-- What was handed out once, is still there and has not come back, is locked.
local locked, cursor = {}, queue.cursor
for i, back in ipairs(redis.call("ZMSCORE", queue.ready, unpack(positions))) do
  locked[i] = (tonumber(positions[i]) <= cursor and not back) and 1 or 0
end
local deliveries = queue.dead and {} or redis.call("HMGET", queue.deliveries, unpack(positions))
local left = (not full and limit < asked and #found == limit) and 1 or 0
return { "OK", text(now), left, entries, deliveries, locked }
