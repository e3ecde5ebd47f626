-- append_chunks stores the messages of a send to a queue, several in one log entry, if all are admitted and nothing
-- about the queue asks for more. Else it returns nil and has done nothing. args are those of send, in chunks. Returns
-- the reply of send.
--@include base/text
--@include entity/can_send
--@include entity/forward_path
--@include wake/wake_next
local function append_chunks(entity, log, waiting, ready_sessions, chunks, args, now)
  local values = redis.call("HMGET", entity, "kind", "keyed", "status", "forward_to", "max_message_count",
    "default_ttl_ms", "max_message_bytes", "max_batch_bytes", "max_bytes", "sequence", "bytes", "dead_bytes",
    "state_bytes", "largest", "chunked", "chunk_extra")
  local is_plain = values[1] == "queue" and values[2] ~= "1" and can_send(values[3]) and not forward_path(values[4])
    and tonumber(values[5]) == 0 and tonumber(values[6]) < 0
  if not is_plain then
    return nil
  end
  local count, held = tonumber(args[3]), (values[11] or 0) + args[4]
  local sequence = tonumber(values[10] or "0")
  local fits = tonumber(args[5]) <= tonumber(values[7]) and tonumber(args[6]) <= tonumber(values[8])
    and held + (values[12] or 0) + (values[13] or 0) <= tonumber(values[9]) and sequence + count <= 9007199254740991
  if not fits then
    return nil
  end
  local is_awaited, first = redis.call("ZCARD", waiting) > 0, text(sequence + 1)
  redis.call("XLEN", log) -- as in lib/base/check_key_types
  local has_chunks = count > (#args - 7) / 2
  if has_chunks then
    redis.call("ZCARD", chunks)
  end
  if has_chunks and tonumber(values[15] or "0") == 0 then
    -- A version without chunks would take them for messages that are gone. This key, which only queues with sessions
    -- use, makes its scripts fail before they do anything (docs/decisions/0035).
    redis.call("SET", ready_sessions, "this queue has messages that only a newer version of Sidebus can read")
    redis.call("DEL", chunks) -- of a queue of this name that such a version deleted
  end
  local times, chunked, extra = text(now) .. ":0", values[15] or "0", tonumber(values[16] or "0")
  for at = 8, #args, 2 do
    local head, payload = args[at], args[at + 1]
    if tonumber(head) then -- the bytes of a single message
      sequence = sequence + 1
      redis.call("XADD", log, string.format("%d-%s", sequence, head), times, payload)
    else
      local of_chunk, bytes, sizes, lengths = string.match(head, "^(%d+) (%d+) (%S+) (%S+)$")
      local from = text(sequence + 1)
      sequence = sequence + of_chunk
      chunked, extra = text(sequence), extra + of_chunk - 1
      redis.call("XADD", log, from .. "-" .. bytes, times, payload, "z", lengths)
      redis.call("ZADD", chunks, from, from .. "-" .. bytes .. ":" .. chunked .. ":" .. sizes)
    end
  end
  redis.call("HSET", entity, "sequence", text(sequence), "bytes", text(held), "accessed_ms", text(now), "largest",
    text(math.max(tonumber(values[14] or "0"), args[7])), "chunked", chunked, "chunk_extra", text(extra))
  if is_awaited then
    wake_next(waiting, count, now)
  end
  return { "OK", "0", first }
end
