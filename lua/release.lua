-- release: end locks and count nothing (SETTLE-10, DC-2).
-- Reads: all.  Writes: locks, ready, expiry, locked_expiry, deliveries, waiting; the dead-letter queue.
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
-- ARGV[3..] lock ...      str     at most 1000
--
-- Returns
--   OK                1 or 0 per lock: done, or lost
--   ENTITY_NOT_FOUND
-- Cost: O(locks log N)
--@include now_ms
--@include rest
--@include open_queue
--@include settle_unsettled
local queue_keys = { KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11], KEYS[12] }
local now, sub, wanted = now_ms(ARGV[1]), ARGV[2], rest(ARGV, 3)

local queue = open_queue(queue_keys, sub)
if not queue then
  return { "ENTITY_NOT_FOUND" }
end
return settle_unsettled(queue, wanted, false, now)
