-- expire_one ends a message whose time is over and that nobody holds: to the dead-letter queue or away (TTL-11, TTL-15, TTL-19).
-- It must be off every index but deliveries, expiry and modified.
--@include bury_entry
--@include remove_entry
local function expire_one(queue, side, entry)
  if side == queue.main and queue.dead_letter_expired then
    local count = redis.call("HGET", side.deliveries, string.match(entry[1], "^%d+")) or "0"
    bury_entry(queue, entry, count, "t", "TTLExpiredException", "the message passed its time to live before it was settled")
  else
    remove_entry(queue, side, entry)
  end
end
