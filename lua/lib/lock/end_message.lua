-- end_message ends a returned message that expired, or whose last delivery this was, or both (DC-5, TTL-13). Returns
-- true when it expired. It must be off every index except deliveries, expiry and modified.
--@include dead_letter/dead_letter_entry
--@include expiry/expire_message
local function end_message(queue, side, entry, count, expired, exhausted)
  if expired and (queue.dead_letter_expired or not exhausted) then
    expire_message(queue, side, entry)
    return true
  end
  local times = tonumber(count) == 1 and "once" or count .. " times"
  dead_letter_entry(queue, entry, count, "m", "MaxDeliveryCountExceeded", "the message was delivered " .. times
    .. " without being settled; the queue permits " .. queue.max_delivery_count)
  return false
end
