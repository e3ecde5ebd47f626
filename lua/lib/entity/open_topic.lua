-- open_topic reads a topic to put messages into; nil when it does not exist. The caller adds the keys.
--@include base/text
local function open_topic(entity, now)
  local values = redis.call("HMGET", entity, "kind", "version", "status", "max_message_bytes", "max_batch_bytes",
    "max_bytes",
    "default_ttl_ms", "fail_if_unmatched", "sequence", "bytes", "most_bytes", "largest", "alarm_ms",
    "requires_duplicate_detection", "partitioned", "durability")
  if values[1] ~= "topic" then
    return nil
  end
  local topic = {
    now = now, entity = entity, version = values[2], status = values[3], max_message_bytes = tonumber(values[4]),
    max_batch_bytes = tonumber(values[5]), max_bytes = tonumber(values[6]), default_ttl_ms = tonumber(values[7]),
    fails_unmatched = values[8] == "1", sequence = tonumber(values[9] or "0"), bytes = tonumber(values[10] or "0"),
    most_bytes = tonumber(values[11] or "0"), largest = tonumber(values[12] or "0"),
    alarm = tonumber(values[13] or "0"),
    deduplicates = values[14] == "1", partitioned = values[15] == "1",
    is_fenced = values[16] and values[16] ~= "SIDECAR", immortal = text(now) .. ":0",
  }
  if topic.deduplicates then
    local history = redis.call("HMGET", entity, "duplicate_window_ms", "duplicate_max_entries")
    topic.duplicate_window_ms, topic.duplicate_max_entries = tonumber(history[1]), tonumber(history[2])
  end
  return topic
end
