-- open_queue reads a queue or subscription; nil when it does not exist. keys are all its keys, in the order of the
-- group queue. A topic has scheduled messages and a history as a queue has; it is returned only with topics_too.
--@keys queue entity log ready locks waiting deliveries expiry gaps delayed deferred modified dead_log dead_ready
--@keys queue dead_locks dead_waiting dead_deliveries dead_expiry dead_gaps dead_delayed dead_deferred dead_modified
--@keys queue dead_numbers scheduled due scheduled_ids history history_times by_session sessions session_locks
--@keys queue session_tokens session_waiting ready_sessions idle_sessions session_states states_due runs run_locks
--@keys queue chunks bodies body_uses
--@include session/open_sessions
--@include entity/forward_path
--@include base/check_key_types
local function open_queue(keys, now, topics_too)
  local values = redis.call("HMGET", keys[1], "status", "lock_duration_ms", "max_delivery_count", "dead_letter_expired",
    "largest", "redelivery_delay_ms", "expire_deferred", "dead_letter_ttl_ms", "alarm_ms", "sequence", "cursor",
    "bytes", "dead_sequence", "dead_cursor", "dead_bytes", "duplicate_window_ms", "requires_session", "kind",
    "forward_to", "forward_dead_to", "forwarder_called", "run_messages", "chunked", "chunk_extra")
  local ready_sessions = values[17] == "1" and keys[33] or keys[5] -- without sessions see intake/append_chunks
  check_key_types({
    keys[5], keys[3], keys[4], keys[7], keys[8], keys[9], keys[10], keys[13], keys[14], keys[15], keys[17], keys[18],
    keys[19], keys[20], keys[22], keys[24], keys[25], keys[27], keys[28], keys[30], ready_sessions, keys[34], keys[36],
    keys[38], keys[39],
  }, { keys[6], keys[11], keys[16], keys[21], keys[26], keys[29], keys[31], keys[32], keys[35], keys[37], keys[12],
    keys[23] }, 10)
  redis.call("XLEN", keys[2])
  for i = 40, tonumber(values[23] or "0") > 0 and 41 or 0 do -- where the bodies of chunks may be
    redis.call("HLEN", keys[i])
  end
  if not values[1] or (values[18] == "topic" and not topics_too) then
    return nil
  end
  local queue = {
    now = now, entity = keys[1], kind = values[18], status = values[1],
    duplicate_window_ms = tonumber(values[16] or "0"),
    lock_duration_ms = tonumber(values[2]), largest = tonumber(values[5] or "0"), expire_deferred = values[7] == "1",
    redelivery_delay_ms = tonumber(values[6] or "0"), dead_letter_ttl_ms = tonumber(values[8] or "-1"),
    max_delivery_count = tonumber(values[3]), dead_letter_expired = values[4] == "1",
    alarm = tonumber(values[9] or "0"), found_alarm = tonumber(values[9] or "0"), forwarder_called = values[21] == "1",
    main = {
      prefix = "", log = keys[2], ready = keys[3], locks = keys[4], waiting = keys[5], deliveries = keys[6],
      expiry = keys[7], gaps = keys[8], delayed = keys[9], deferred = keys[10], modified = keys[11],
      sequence = tonumber(values[10] or "0"), cursor = tonumber(values[11] or "0"), bytes = tonumber(values[12] or "0"),
      newly_available = 0, runs = keys[37], run_locks = keys[38], run_messages = tonumber(values[22] or "0"),
      chunks = keys[39], chunked = tonumber(values[23] or "0"), chunk_extra = tonumber(values[24] or "0"),
      entity = keys[1], bodies = keys[40], body_uses = keys[41],
    },
    dead = {
      prefix = "dead_", log = keys[12], ready = keys[13], locks = keys[14], waiting = keys[15], deliveries = keys[16],
      expiry = keys[17], gaps = keys[18], delayed = keys[19], deferred = keys[20], modified = keys[21],
      numbers = keys[22], sequence = tonumber(values[13] or "0"), cursor = tonumber(values[14] or "0"),
      bytes = tonumber(values[15] or "0"), newly_available = 0, run_messages = 0, chunked = 0, chunk_extra = 0,
    },
    scheduled = keys[23], due = keys[24], scheduled_ids = keys[25],
    history = keys[26], history_times = keys[27], is_topic = values[18] == "topic",
  }
  if values[17] == "1" then
    open_sessions(queue, { unpack(keys, 28, 36) })
  end
  queue.main.forwards, queue.dead.forwards = forward_path(values[19]), forward_path(values[20])
  return queue
end
