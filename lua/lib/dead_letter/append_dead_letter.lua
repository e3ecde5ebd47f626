-- append_dead_letter appends a message to the dead letters (DLQ-16). fields are those of its log entry, sequence and
-- count its number and failed deliveries; reason and description may be nil (SETTLE-7). Returns its position.
--@include base/text
--@include due/expect
local function append_dead_letter(queue, fields, size, sequence, count, reason, description)
  local dead = queue.dead
  local position = text(redis.call("HINCRBY", queue.entity, "dead_sequence", 1))
  dead.sequence = tonumber(position)
  for _, pair in ipairs({ { "n", sequence }, { "c", count }, { "a", text(queue.now) }, { "r", reason },
    { "d", description } }) do
    if pair[2] then
      fields[#fields + 1], fields[#fields + 2] = pair[1], pair[2]
    end
  end
  redis.call("XADD", dead.log, position .. "-" .. size, unpack(fields))
  redis.call("ZADD", dead.numbers, sequence, position)
  if queue.dead_letter_ttl_ms >= 0 then
    local expires = queue.now + queue.dead_letter_ttl_ms
    redis.call("ZADD", dead.expiry, text(expires), position)
    expect(queue, expires)
  end
  dead.newly_available = dead.newly_available + 1
  return position
end
