-- dead_letter_entry moves one entry of the main log to the dead-letter queue (DLQ-16, DLQ-17). The entry must be off every index but
-- deliveries. queue.moved counts, so that the caller can wake waiters once.
--@include text
local function dead_letter_entry(queue, entry, count, reason, description, now)
  local sequence, size = string.match(entry[1], "^(%d+)%-(%d+)")
  local position = text(redis.call("HINCRBY", queue.entity, "dead_sequence", 1))
  redis.call("XADD", queue.dead_log, position .. "-" .. size, entry[2][1], entry[2][2],
    "n", sequence, "c", count, "a", text(now), "r", reason, "d", description)
  redis.call("ZADD", queue.dead_numbers, sequence, position)
  redis.call("XDEL", queue.log, entry[1])
  redis.call("HDEL", queue.deliveries, sequence)
  redis.call("HINCRBY", queue.entity, "bytes", text(-size))
  redis.call("HINCRBY", queue.entity, "dead_bytes", size)
  queue.moved = queue.moved + 1
end
