-- give_back decides what becomes of a message whose lock has ended without settlement: available again at its
-- place (RECV-9), expired (TTL-9, TTL-13), or dead-lettered because that was its last delivery (DC-5). The lock must be gone.
-- counted says whether this was a delivery that failed (DC-1) or none at all (DC-2).
-- Returns true when the message is available again.
--@include dead_letter_entry
--@include expire_entry
--@include entry_at
local function give_back(queue, position, counted, now)
  if queue.dead then
    redis.call("ZADD", queue.ready, position, position)
    return true
  end
  local count = 0
  if counted then
    count = redis.call("HINCRBY", queue.deliveries, position, 1)
  end
  local expires = redis.call("ZSCORE", queue.locked_expiry, position)
  if expires then
    redis.call("ZREM", queue.locked_expiry, position)
  end
  local expired = expires and tonumber(expires) <= now
  local exhausted = counted and count >= queue.max_delivery_count
  if not expired and not exhausted then
    redis.call("ZADD", queue.ready, position, position)
    if expires then
      redis.call("ZADD", queue.expiry, expires, position)
    end
    return true
  end
  local entry = entry_at(queue.log, position)
  if not entry then
    redis.call("HDEL", queue.deliveries, position)
  elseif expired and (queue.dead_letter_expired or not exhausted) then
    expire_entry(queue, entry, now)
  else
    dead_letter_entry(queue, entry, count, "MaxDeliveryCountExceeded",
      "the message was delivered " .. count .. " times without being settled; the queue permits " .. queue.max_delivery_count, now)
  end
  return false
end
