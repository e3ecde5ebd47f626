-- open_target reads what must be known to put messages into a queue. The caller adds the keys it writes to. Returns nil when the
-- queue does not exist. Dead letters of a subscription may go back there: then it is one too, if the caller says so.
--@include forwards
local function open_target(entity, now, subscriptions_too)
  local values = redis.call("HMGET", entity, "status", "max_message_bytes", "max_batch_bytes", "max_bytes",
    "max_message_count", "default_ttl_ms", "sequence", "bytes", "dead_bytes", "keyed", "cursor", "alarm_ms", "largest",
    "requires_session", "state_bytes", "kind", "forward_to", "forwarder_called")
  if values[16] ~= "queue" and not (values[16] == "subscription" and subscriptions_too) then
    return nil
  end
  return {
    now = now, entity = entity, status = values[1], max_message_bytes = tonumber(values[2]),
    max_batch_bytes = tonumber(values[3]), max_bytes = tonumber(values[4]), max_message_count = tonumber(values[5]),
    default_ttl_ms = tonumber(values[6]), sequence = tonumber(values[7] or "0"), bytes = tonumber(values[8] or "0"),
    dead_bytes = tonumber(values[9] or "0"), state_bytes = tonumber(values[15] or "0"), keyed = values[10] == "1", cursor = tonumber(values[11] or "0"),
    alarm = tonumber(values[12] or "0"), largest = tonumber(values[13] or "0"),
    has_sessions = values[14] == "1", forwards = forwards(values[17]), forwarder_called = values[18] == "1",
  }
end
