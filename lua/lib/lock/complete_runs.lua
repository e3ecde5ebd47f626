-- complete_runs completes messages that are all in runs whose locks hold. wanted are their positions by nonce, each a
-- text in the form of a run; they are total messages of these sizes (log/parse_sizes). Returns false if they are not
-- all in such runs, and then at most messages have left the log whose locks hold.
--@include base/text
--@include lock/run_without
--@include lock/save_run
--@include log/delete_spans
local function complete_runs(entity, side, nonces, wanted, total, sizes, now)
  local ends, found, over, lefts, spans = redis.call("ZMSCORE", side.run_locks, unpack(nonces)), 0, {}, {}, {}
  for i, run in ipairs(redis.call("HMGET", side.runs, unpack(nonces))) do
    if not run or not ends[i] or tonumber(ends[i]) <= now then
      return false
    end
    local left, taken, messages = run_without(run, wanted[i])
    found, lefts[i] = found + messages, left or false
    for _, position in ipairs(taken) do
      spans[#spans + 1] = position
    end
    over[#over + 1] = not left and nonces[i] or nil
  end
  redis.call("XLEN", side.log) -- as in lib/base/check_key_types
  if #over < #nonces then
    redis.call("ZCARD", side.locks)
  end
  if found < total then
    return false
  end
  local bytes, fewer = delete_spans(side, spans, sizes)
  if not bytes then
    return false
  end
  side.run_messages = side.run_messages - total
  if #over > 0 then
    redis.call("HDEL", side.runs, unpack(over))
    redis.call("ZREM", side.run_locks, unpack(over))
  end
  for i, left in ipairs(lefts) do
    if left then
      save_run(side, nonces[i], left, ends[i])
    end
  end
  redis.call("HSET", entity, "accessed_ms", text(now), "bytes", text(side.bytes - bytes), "run_messages",
    text(side.run_messages), "chunk_extra", text(side.chunk_extra - fewer))
  return true
end
