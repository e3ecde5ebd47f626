-- bury_entry moves a message of the main side to the dead-letter queue, in one step and with all that belongs to it (DLQ-16,
-- DLQ-17). reason and description may be nil (SETTLE-7). It must be off every index but deliveries, expiry and modified.
-- cause says in one letter what brought it there: a = the application, m = MaxDeliveryCount, t = TimeToLive; whoever ran the
-- script is told (DLQ-24).
--@include text
--@include add_dead_letter
--@include forget_modified
--@include session_of
--@include block_session
local function bury_entry(queue, entry, count, cause, reason, description)
  local main, dead = queue.main, queue.dead
  local sequence, size = string.match(entry[1], "^(%d+)%-(%d+)")
  local fields = { unpack(entry[2]) } -- times, payload, of a copy its number in the topic, and of a session s and q
  local position = add_dead_letter(queue, fields, size, sequence, count, reason, description)
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
  block_session(queue, session_of(entry))
  queue.buried = (queue.buried or "") .. " " .. sequence .. cause
  if queue.slice_bytes then
    queue.slice_bytes = queue.slice_bytes - size
  end
end
