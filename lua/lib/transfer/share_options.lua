-- share_options copies the options that receiving needs from an entity to its transfer dead-letter queue.
local function share_options(entity, transfers)
  local values = redis.call("HMGET", entity, "status", "lock_duration_ms", "dead_letter_ttl_ms",
    "durability")
  redis.call("HSET", transfers, "status", values[1], "lock_duration_ms", values[2], "dead_letter_ttl_ms",
    values[3] or "-1", "durability", values[4] or "SIDECAR")
end
