-- queue_runtime: count a queue (CNT-1, CNT-2) after doing what is due on it.
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
--
-- Returns
--   OK                log_length locked expired_pending dead_length bytes dead_bytes oldest_enqueued_ms
--   ENTITY_NOT_FOUND
-- Cost: O(log N)
--@include now_ms
--@include text
--@include open_queue
--@include clear_slice
--@include wake_next
local queue_keys = { KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11], KEYS[12] }
local now = now_ms(ARGV[1])

local queue = open_queue(queue_keys, "")
if not queue then
  return { "ENTITY_NOT_FOUND" }
end
local returned = clear_slice(queue, now)
if returned > 0 then
  wake_next(queue.waiting, returned)
end
if queue.moved > 0 then
  wake_next(queue.dead_waiting, queue.moved)
end
local sizes = redis.call("HMGET", queue.entity, "bytes", "dead_bytes")
local oldest = redis.call("XRANGE", queue.log, "-", "+", "COUNT", 1)[1]
return {
  "OK", redis.call("XLEN", queue.log), redis.call("ZCOUNT", queue.locks, "(" .. text(now), "+inf"), redis.call("ZCOUNT", queue.expiry, "-inf", now),
  redis.call("XLEN", queue.dead_log), sizes[1] or "0", sizes[2] or "0", oldest and string.match(oldest[2][1], "^%d+") or "0",
}
