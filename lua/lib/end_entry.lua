-- end_entry ends a message that was given back and whose time is over, or whose last delivery this was, or both (DC-5, TTL-13).
-- Returns true when it was its time. It must be off every index but deliveries, expiry and modified.
--@include bury_entry
--@include expire_one
local function end_entry(queue, side, entry, count, expired, exhausted)
  if expired and (queue.dead_letter_expired or not exhausted) then
    expire_one(queue, side, entry)
    return true
  end
  bury_entry(queue, entry, count, "m", "MaxDeliveryCountExceeded", "the message was delivered " .. count
    .. " times without being settled; the queue permits " .. queue.max_delivery_count)
  return false
end
