-- dead_letter: move locked messages of the main queue to its dead-letter queue (SETTLE-6, DLQ-12, DLQ-16, DLQ-17).
-- Reads: all.  Writes: locks, log, deliveries, locked_expiry; the dead-letter queue.
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
-- ARGV[2] reason          str     as the application gives it, may be empty
-- ARGV[3] description     str     as the application gives it, may be empty
-- ARGV[4..] lock ...      str     at most 1000
--
-- Returns
--   OK                1 or 0 per lock: done, or lost
--   ENTITY_NOT_FOUND
-- Cost: O(locks log N + bytes moved)
--@include now_ms
--@include rest
--@include touch
--@include open_queue
--@include live_locks
--@include lock_position
--@include entry_at
--@include dead_letter_entry
--@include wake_next
local queue_keys = { KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11], KEYS[12] }
local now, reason, description, wanted = now_ms(ARGV[1]), ARGV[2], ARGV[3], rest(ARGV, 4)

local queue = open_queue(queue_keys, "")
if not queue then
  return { "ENTITY_NOT_FOUND" }
end
touch(queue.entity, now)
local live, held = live_locks(queue.locks, wanted, now)
local results, positions = { "OK" }, {}
for i = 1, #wanted do
  results[i + 1] = live[i] and 1 or 0
end
if #held == 0 then
  return results
end
for i, lock in ipairs(held) do
  positions[i] = lock_position(lock)
end
redis.call("ZREM", queue.locks, unpack(held))
redis.call("ZREM", queue.locked_expiry, unpack(positions))
table.sort(positions, function(a, b) return tonumber(a) < tonumber(b) end)
for _, position in ipairs(positions) do
  local entry = entry_at(queue.log, position)
  if entry then
    local count = redis.call("HGET", queue.deliveries, position) or "0"
    dead_letter_entry(queue, entry, count, reason, description, now)
  end
end
wake_next(queue.dead_waiting, queue.moved)
return results
