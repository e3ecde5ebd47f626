-- dead_letter_entry moves a message of the main side to the dead-letter queue with all that belongs to it (DLQ-16,
-- DLQ-17). reason and description may be nil (SETTLE-7). It must be off every index except deliveries, expiry and
-- modified. cause is one letter (DLQ-24): a = the application, m = MaxDeliveryCount, t = TimeToLive, r = the rest of
-- its session was given up, which does not block that.
--@include base/text
--@include dead_letter/append_dead_letter
--@include log/forget_changes
--@include log/delete_entry
--@include session/session_of
--@include session/block_session
local function dead_letter_entry(queue, entry, count, cause, reason, description)
  local main, dead = queue.main, queue.dead
  local sequence, size = string.match(entry[1], "^(%d+)%-(%d+)")
  local fields = { unpack(entry[2]) } -- times, payload, of a copy its number in the topic, and of a session s and q
  local position = append_dead_letter(queue, fields, size, sequence, count, reason, description)
  local changed = redis.call("HGET", main.modified, sequence)
  if changed then
    redis.call("HSET", dead.modified, position, changed)
  end
  local bytes = size + forget_changes(main, sequence)
  delete_entry(main, entry)
  redis.call("HDEL", main.deliveries, sequence)
  redis.call("ZREM", main.expiry, sequence)
  redis.call("HINCRBY", queue.entity, "bytes", text(-bytes))
  redis.call("HINCRBY", queue.entity, "dead_bytes", text(bytes))
  if cause ~= "r" then
    block_session(queue, session_of(entry))
  end
  queue.dead_lettered = (queue.dead_lettered or "") .. " " .. sequence .. cause
  if queue.slice_bytes then
    queue.slice_bytes = queue.slice_bytes - size
  end
end
