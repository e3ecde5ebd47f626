-- open_queue reads what the scripts on a queue or subscription must know. keys are all its keys, in the order in which every
-- such script declares them as KEYS[1..36]. Returns nil when it does not exist. A topic has scheduled messages and a history as a
-- queue has, and nothing else; it is given only to those who ask for topics too.
--
-- The result has the options and two sides, main and dead, which are alike: messages in log, the order of those that came
-- back in ready, and so on (README.md). came counts what became available on a side, for wake_receivers; on the main side of a
-- queue with sessions the sessions that became ready. forwards is where a side forwards to, nil for nowhere.
--@include open_sessions
--@include forwards
local function open_queue(keys, now, topics_too)
  local values = redis.call("HMGET", keys[1], "status", "lock_duration_ms", "max_delivery_count", "dead_letter_expired",
    "largest", "redelivery_delay_ms", "expire_deferred", "dead_letter_ttl_ms", "alarm_ms",
    "sequence", "cursor", "bytes", "dead_sequence", "dead_cursor", "dead_bytes", "duplicate_window_ms",
    "requires_session", "kind", "forward_to", "forward_dead_to", "forwarder_called")
  if not values[1] or (values[18] == "topic" and not topics_too) then
    return nil
  end
  local queue = {
    now = now, entity = keys[1], status = values[1], lock_duration_ms = tonumber(values[2]),
    max_delivery_count = tonumber(values[3]), dead_letter_expired = values[4] == "1",
    largest = tonumber(values[5] or "0"), redelivery_delay_ms = tonumber(values[6] or "0"),
    expire_deferred = values[7] == "1", dead_letter_ttl_ms = tonumber(values[8] or "-1"),
    alarm = tonumber(values[9] or "0"), found_alarm = tonumber(values[9] or "0"), duplicate_window_ms = tonumber(values[16] or "0"),
    main = {
      prefix = "", log = keys[2], ready = keys[3], locks = keys[4], waiting = keys[5], deliveries = keys[6],
      expiry = keys[7], gaps = keys[8], delayed = keys[9], deferred = keys[10], modified = keys[11],
      sequence = tonumber(values[10] or "0"), cursor = tonumber(values[11] or "0"), bytes = tonumber(values[12] or "0"),
      came = 0,
    },
    dead = {
      prefix = "dead_", log = keys[12], ready = keys[13], locks = keys[14], waiting = keys[15], deliveries = keys[16],
      expiry = keys[17], gaps = keys[18], delayed = keys[19], deferred = keys[20], modified = keys[21],
      numbers = keys[22],
      sequence = tonumber(values[13] or "0"), cursor = tonumber(values[14] or "0"), bytes = tonumber(values[15] or "0"),
      came = 0,
    },
    scheduled = keys[23], due = keys[24], scheduled_ids = keys[25],
    history = keys[26], history_times = keys[27], is_topic = values[18] == "topic",
  }
  if values[17] == "1" then
    open_sessions(queue, { unpack(keys, 28, 36) })
  end
  queue.main.forwards, queue.dead.forwards = forwards(values[19]), forwards(values[20])
  queue.forwarder_called = values[21] == "1"
  return queue
end
