-- bury_entry moves a message of the main side to the dead-letter queue, in one step and with all that belongs to it (DLQ-16,
-- DLQ-17). reason and description may be nil (SETTLE-7). It must be off every index but deliveries, expiry and modified.
-- cause says in one letter what brought it there: a = the application, m = MaxDeliveryCount, t = TimeToLive; whoever ran the
-- script is told (DLQ-24).
--@include text
--@include expect
--@include forget_modified
local function bury_entry(queue, entry, count, cause, reason, description)
  local main, dead = queue.main, queue.dead
  local sequence, size = string.match(entry[1], "^(%d+)%-(%d+)")
  local position = text(redis.call("HINCRBY", queue.entity, "dead_sequence", 1))
  dead.sequence = tonumber(position)
  local id, times, payload = position .. "-" .. size, entry[2][1], entry[2][2]
  if reason and description then
    redis.call("XADD", dead.log, id, times, payload, "n", sequence, "c", count, "a", text(queue.now), "r", reason, "d", description)
  elseif reason then
    redis.call("XADD", dead.log, id, times, payload, "n", sequence, "c", count, "a", text(queue.now), "r", reason)
  elseif description then
    redis.call("XADD", dead.log, id, times, payload, "n", sequence, "c", count, "a", text(queue.now), "d", description)
  else
    redis.call("XADD", dead.log, id, times, payload, "n", sequence, "c", count, "a", text(queue.now))
  end
  redis.call("ZADD", dead.numbers, sequence, position)
  if queue.dead_letter_ttl_ms >= 0 then
    local expires = queue.now + queue.dead_letter_ttl_ms
    redis.call("ZADD", dead.expiry, text(expires), position)
    expect(queue, expires)
  end
  local changed = redis.call("HGET", main.modified, sequence)
  if changed then
    redis.call("HSET", dead.modified, position, changed)
  end
  local bytes = size + forget_modified(main, sequence)
  redis.call("XDEL", main.log, entry[1])
  redis.call("HDEL", main.deliveries, sequence)
  redis.call("ZREM", main.expiry, sequence)
  redis.call("HINCRBY", queue.entity, "bytes", text(-bytes))
  redis.call("HINCRBY", queue.entity, "dead_bytes", text(bytes))
  dead.came = dead.came + 1
  queue.buried = (queue.buried or "") .. " " .. sequence .. cause
  if queue.slice_bytes then
    queue.slice_bytes = queue.slice_bytes - size
  end
end
