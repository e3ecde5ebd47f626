-- take_run takes the next messages of a queue as a run, if all that it has are fresh, without options, and small. Else
-- it returns nil and has done nothing. side needs its keys only; the other parameters are arguments of receive. Returns
-- the reply of receive.
--@include base/text
--@include entity/can_receive
--@include entity/forward_path
--@include entity/touch
--@include log/chunk_over
--@include wake/recheck_ms
--@include wake/wait_here
--@include wake/wake_next
local READ_HERE = 8192 -- most bytes of messages that are returned with the reply (docs/decisions/0039)
local function take_run(side, now, limit, safe, nonce, register_below, sidecar)
  local entity, log, waiting, runs, run_locks = side.entity, side.log, side.waiting, side.runs, side.run_locks
  local values = redis.call("HMGET", entity, "status", "kind", "requires_session", "forward_to", "alarm_ms", "largest",
    "lock_duration_ms", "sequence", "cursor", "run_messages", "chunked")
  local alarm = tonumber(values[5] or "0")
  local is_plain = can_receive(values[1]) and values[2] ~= "topic" and values[3] ~= "1" and not forward_path(values[4])
    and (alarm == 0 or now < alarm) and (safe == 0 or tonumber(values[6] or "0") + 256 <= safe)
  if not is_plain or redis.call("EXISTS", side.ready, side.expiry, side.gaps, side.modified) > 0 then
    return nil
  end
  redis.call("XLEN", log) -- as in lib/base/check_key_types
  redis.call("ZCARD", run_locks)
  local is_awaited = redis.call("ZCARD", waiting) > 0
  local sequence, cursor, lock_ms = tonumber(values[8] or "0"), tonumber(values[9] or "0"), tonumber(values[7])
  local count, ends, notifications, spans = math.min(limit, sequence - cursor), text(now + lock_ms), "0", {}
  local from, entries = "", {}
  if count > 0 then
    local chunk = chunk_over({ chunks = side.chunks, chunked = tonumber(values[11] or "0") }, cursor + 1)
    from = chunk and chunk.first <= cursor and text(chunk.first) or ""
    local first, last = text(cursor + 1), text(cursor + count)
    if redis.call("HSETNX", runs, nonce, first .. "-" .. last) == 0 then
      return nil -- the nonce came before
    end
    redis.call("ZADD", run_locks, ends, nonce)
    if alarm == 0 or now + lock_ms < alarm then
      notifications, alarm = ends, now + lock_ms
    end
    if not chunk and count * (tonumber(values[6] or "0") + 256) <= READ_HERE then
      entries = redis.call("XRANGE", log, first, last)
    end
    redis.call("HSET", entity, "cursor", last, "run_messages", text((values[10] or 0) + count), "accessed_ms",
      text(now), "alarm_ms", text(alarm))
    spans = { first, last }
  else
    touch(entity, now)
  end
  local left = sequence > cursor + count
  if count < register_below then
    wait_here(waiting, now, sidecar)
  end
  if left and count > 0 and is_awaited then
    wake_next(waiting, sequence - cursor - count, now)
  end
  local recheck = recheck_ms({ lock_duration_ms = lock_ms, alarm = alarm, now = now })
  return { "OK", notifications, recheck, left and 1 or 0, ends, {}, {}, {}, spans, {}, from, entries }
end
