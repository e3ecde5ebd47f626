-- append_chunks stores the messages of a send to a queue, several in one log entry, if all are admitted and nothing
-- about the queue asks for more. Else it returns nil and has done nothing. args are those of send, in chunks. Returns
-- the reply of send.
--@include base/text
--@include intake/admit_together
--@include wake/wake_next
local function append_chunks(entity, log, waiting, ready_sessions, chunks, args, now, awaited)
  local sequence, bytes, largest, chunked, extra = admit_together(entity, args, false, awaited)
  if not sequence then
    return nil
  end
  local count = tonumber(args[3])
  local is_awaited, first = redis.call("ZCARD", waiting) > 0, text(sequence + 1)
  redis.call("XLEN", log) -- as in lib/base/check_key_types
  local has_chunks = count > (#args - 7) / 2
  if has_chunks then
    redis.call("ZCARD", chunks)
  end
  if has_chunks and tonumber(chunked) == 0 then
    -- A version without chunks would take them for messages that are gone. This key, which only queues with sessions
    -- use, makes its scripts fail before they do anything (docs/decisions/0035).
    redis.call("SET", ready_sessions, "this queue has messages that only a newer version of Sidebus can read")
    redis.call("DEL", chunks) -- of a queue of this name that such a version deleted
  end
  local times = text(now) .. ":0"
  for at = 8, #args, 2 do
    local head, payload = args[at], args[at + 1]
    if tonumber(head) then -- the bytes of a single message
      sequence = sequence + 1
      redis.call("XADD", log, string.format("%d-%s", sequence, head), times, payload)
    else
      local of_chunk, size, sizes, lengths = string.match(head, "^(%d+) (%d+) (%S+) (%S+)$")
      local from = text(sequence + 1)
      sequence = sequence + of_chunk
      chunked, extra = text(sequence), extra + of_chunk - 1
      redis.call("XADD", log, from .. "-" .. size, times, payload, "z", lengths)
      redis.call("ZADD", chunks, from, from .. "-" .. size .. ":" .. chunked .. ":" .. sizes)
    end
  end
  redis.call("HSET", entity, "sequence", text(sequence), "bytes", text(bytes), "accessed_ms", text(now), "largest",
    text(largest), "chunked", chunked, "chunk_extra", text(extra))
  if is_awaited then
    wake_next(waiting, count, now)
  end
  return { "OK", "0", first }
end
