-- open_queue reads what the scripts on a source must know: options and counters. keys names the source's keys, in
-- the order every such script declares them. sub is "" for the main queue and "dead_" for the dead-letter queue, which is also the
-- prefix of the fields that belong to it. Returns nil when the entity does not exist.
local function open_queue(keys, sub)
  local values = redis.call("HMGET", keys[1], "status", "lock_duration_ms", "max_delivery_count", "dead_letter_expired",
    sub .. "cursor", sub .. "bytes", sub .. "sequence",
    "max_message_bytes")
  if not values[1] then
    return nil
  end
  return {
    entity = keys[1], log = keys[2], ready = keys[3], locks = keys[4], waiting = keys[5],
    deliveries = keys[6], expiry = keys[7], locked_expiry = keys[8],
    gaps = keys[9],
    dead_log = keys[10], dead_numbers = keys[11], dead_waiting = keys[12],
    dead = sub ~= "", status = values[1], lock_duration_ms = tonumber(values[2]),
    max_delivery_count = tonumber(values[3]), dead_letter_expired = values[4] == "1",
    cursor = tonumber(values[5] or "0"), bytes = tonumber(values[6] or "0"), sequence = tonumber(values[7] or "0"),
    max_message_bytes = tonumber(values[8]), moved = 0,
  }
end
