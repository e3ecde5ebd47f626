-- expire_message ends an expired message that is not locked: to the dead-letter queue, or it is removed (TTL-11,
-- TTL-15, TTL-19). It must be off every index except deliveries, expiry and modified.
--@include dead_letter/dead_letter_entry
--@include log/remove_entry
local function expire_message(queue, side, entry)
  if side == queue.main and queue.dead_letter_expired then
    local count = redis.call("HGET", side.deliveries, string.match(entry[1], "^%d+")) or "0"
    dead_letter_entry(queue, entry, count, "t", "TTLExpiredException",
      "the message passed its time to live before it was settled")
  else
    remove_entry(queue, side, entry)
  end
end
