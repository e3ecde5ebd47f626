-- expire_entry ends an unlocked message whose time is over: to the dead-letter queue or away (TTL-11, TTL-15). The entry must be
-- off every index but deliveries.
--@include dead_letter_entry
--@include text
local function expire_entry(queue, entry, now)
  local sequence, size = string.match(entry[1], "^(%d+)%-(%d+)")
  if tonumber(sequence) > queue.cursor then
    redis.call("ZADD", queue.gaps, sequence, sequence)
  end
  if queue.dead_letter_expired then
    local count = redis.call("HGET", queue.deliveries, sequence) or "0"
    dead_letter_entry(queue, entry, count, "TTLExpiredException", "the message passed its time to live before it was settled", now)
    return
  end
  redis.call("XDEL", queue.log, entry[1])
  redis.call("HDEL", queue.deliveries, sequence)
  redis.call("HINCRBY", queue.entity, "bytes", text(-size))
end
