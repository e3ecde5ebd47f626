-- move_to_transfers moves a message of a side to the transfer dead-letter queue (DLQ-13, DLQ-16). It must be off every
-- index except deliveries, expiry and modified.
--@include dead_letter/append_dead_letter
--@include log/remove_entry
--@include base/text
local function move_to_transfers(queue, side, transfers, entry, fate)
  local position, size = string.match(entry[1], "^(%d+)%-(%d+)")
  local fields, was = { entry[2][1], entry[2][2] }, {}
  for i = 3, #entry[2], 2 do
    local name, value = entry[2][i], entry[2][i + 1]
    was[name] = value
    if name == "s" or name == "q" or name == "e" then
      fields[#fields + 1], fields[#fields + 2] = name, value
    end
  end
  -- of a dead letter the number and count that it had before it became a dead letter
  local sequence = side.numbers and was.n or position
  local count = side.numbers and was.c or redis.call("HGET", side.deliveries, position) or "0"
  local changed = redis.call("HGET", side.modified, position)
  local to = append_dead_letter(transfers, fields, size, sequence, count, fate.reason, fate.description)
  if changed then
    redis.call("HSET", transfers.dead.modified, to, changed)
  end
  redis.call("HINCRBY", transfers.entity, "dead_bytes", text(remove_entry(queue, side, entry)))
  queue.dead_lettered = (queue.dead_lettered or "") .. " " .. sequence .. fate.cause
end
