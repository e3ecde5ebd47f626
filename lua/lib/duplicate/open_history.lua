-- open_history reads the options of duplicate detection and partitioning. Only "keyed" queues have one or the other.
local function open_history(target)
  local values = redis.call("HMGET", target.entity, "requires_duplicate_detection", "duplicate_window_ms",
    "duplicate_max_entries", "partitioned")
  target.deduplicates = values[1] == "1"
  target.duplicate_window_ms, target.duplicate_max_entries = tonumber(values[2]), tonumber(values[3])
  target.partitioned = values[4] == "1"
end
