-- open_target reads a queue to put messages into; nil when it does not exist. The caller adds the keys. With
-- subscriptions_too it may be a subscription, which its dead letters go back to.
--@include entity/forward_path
local function open_target(entity, now, subscriptions_too)
  local values = redis.call("HMGET", entity, "status", "max_message_bytes", "max_batch_bytes", "max_bytes",
    "max_message_count", "default_ttl_ms", "sequence", "bytes", "dead_bytes", "keyed", "cursor", "alarm_ms", "largest",
    "requires_session", "state_bytes", "kind", "forward_to", "forwarder_called",
    "chunk_extra")
  local kind = values[16]
  if kind ~= "queue" and kind ~= "fenced_queue"
    and not (subscriptions_too and (kind == "subscription" or kind == "fenced_subscription")) then
    return nil
  end
  local bytes, dead_bytes, state_bytes = tonumber(values[8] or "0"), tonumber(values[9] or "0"),
    tonumber(values[15] or "0")
  return {
    now = now, entity = entity, kind = kind, status = values[1], max_message_bytes = tonumber(values[2]),
    max_batch_bytes = tonumber(values[3]), max_bytes = tonumber(values[4]), max_message_count = tonumber(values[5]),
    default_ttl_ms = tonumber(values[6]), sequence = tonumber(values[7] or "0"), bytes = bytes, dead_bytes = dead_bytes,
    held = bytes + dead_bytes + state_bytes, newly_available = 0, keyed = values[10] == "1",
    cursor = tonumber(values[11] or "0"),
    alarm = tonumber(values[12] or "0"), largest = tonumber(values[13] or "0"),
    has_sessions = values[14] == "1", forwards = forward_path(values[17]), forwarder_called = values[18] == "1",
    chunk_extra = tonumber(values[19] or "0"),
  }
end
