-- admit_together admits all messages of a send to a queue if nothing about the queue asks for more than to store them.
-- args are those of send, in chunks or in sessions, and awaited is what now_ms returns. Returns the last sequence
-- number, the bytes of the queue with these messages, the largest payload it ever took, and chunked and chunk_extra of
-- the queue; nil if it does not admit them.
--@include entity/can_send
--@include entity/forward_path
local function admit_together(entity, args, has_sessions, awaited)
  local values = redis.call("HMGET", entity, "kind", "requires_session", "status", "forward_to", "max_message_count",
    "default_ttl_ms", "max_message_bytes", "max_batch_bytes", "max_bytes", "sequence", "bytes", "dead_bytes",
    "state_bytes", "largest", "chunked", "chunk_extra", "requires_duplicate_detection", "partitioned")
  local waits = values[1] == "queue" and not awaited -- or as in lib/entity/lacks_fence
    or values[1] == "fenced_queue" and redis.call("HGET", entity, "durability") == awaited
  local is_plain = waits and (values[2] == "1") == has_sessions and can_send(values[3])
    and not forward_path(values[4]) and tonumber(values[5]) == 0 and tonumber(values[6]) < 0 and values[17] ~= "1"
    and values[18] ~= "1"
  if not is_plain then
    return nil
  end
  local sequence, bytes = tonumber(values[10] or "0"), (values[11] or 0) + args[4]
  local fits = tonumber(args[5]) <= tonumber(values[7]) and tonumber(args[6]) <= tonumber(values[8])
    and bytes + (values[12] or 0) + (values[13] or 0) <= tonumber(values[9]) and sequence + args[3] <= 9007199254740991
  if not fits then
    return nil
  end
  return sequence, bytes, math.max(tonumber(values[14] or "0"), args[7]), values[15] or "0", tonumber(values[16] or "0")
end
