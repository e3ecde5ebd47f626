-- append_plain stores the calls of a send to a queue if none of their messages has options and all are admitted. Else
-- it returns nil and has done nothing. args are those of send. Returns the reply of send.
--@include base/text
--@include entity/can_send
--@include entity/forward_path
--@include wake/wake_next
local function append_plain(entity, log, waiting, args, now)
  local values = redis.call("HMGET", entity, "kind", "keyed", "status", "forward_to", "max_message_count",
    "default_ttl_ms", "max_message_bytes", "max_batch_bytes", "max_bytes", "sequence", "bytes", "dead_bytes",
    "state_bytes", "largest")
  local is_plain = values[1] == "queue" and values[2] ~= "1" and can_send(values[3]) and not forward_path(values[4])
    and tonumber(values[5]) == 0 and tonumber(values[6]) < 0
  if not is_plain then
    return nil
  end
  local max_message_bytes, max_batch_bytes = tonumber(values[7]), tonumber(values[8])
  local bytes, largest, count, at = 0, tonumber(values[14] or "0"), 0, 3
  while at <= #args do
    local of_call, total = tonumber(args[at]), 0
    for i = at + 1, at + 2 * (of_call or 0), 2 do
      local size = tonumber(args[i])
      if not size or size > max_message_bytes then
        return nil
      end
      total, largest = total + size, math.max(largest, #args[i + 1])
    end
    if not of_call or (of_call > 1 and total > max_batch_bytes) then
      return nil
    end
    bytes, count, at = bytes + total, count + of_call, at + 1 + 2 * of_call
  end
  local sequence, held = tonumber(values[10] or "0"), (values[11] or 0) + bytes
  if held + (values[12] or 0) + (values[13] or 0) > tonumber(values[9]) or sequence + count > 9007199254740991 then
    return nil
  end
  local is_awaited, reply = redis.call("ZCARD", waiting) > 0, { "OK", "0" }
  redis.call("XLEN", log) -- as in lib/base/check_key_types
  at = 3
  while at <= #args do
    reply[#reply + 1] = text(sequence + 1)
    for i = at + 1, at + 2 * args[at], 2 do
      sequence = sequence + 1
      redis.call("XADD", log, string.format("%d-%s", sequence, args[i]), text(now) .. ":0", args[i + 1])
    end
    at = at + 1 + 2 * args[at]
  end
  redis.call("HSET", entity, "sequence", text(sequence), "bytes", text(held), "accessed_ms", text(now), "largest",
    text(largest))
  if is_awaited then
    wake_next(waiting, count, now)
  end
  return reply
end
