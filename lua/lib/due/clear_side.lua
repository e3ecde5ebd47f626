-- clear_side does what is due on one side of a queue: at most 100 of each kind. Ended locks and expired messages are
-- handled in one order, that of the positions, because they may become dead letters (DLQ-16).
--@include lock/end_lock
--@include lock/unlock_together
--@include lock/take_ended
--@include expiry/expire_at
--@include lock/position_of_lock
--@include session/ended_session_locks
--@include session/end_session
--@include session/end_delay
--@include due/note_held_until
--@include expiry/expire_marked_sessions
local function clear_side(queue, side)
  local slice = 100
  local delay_ms = side == queue.main and queue.redelivery_delay_ms or 0
  local items, left = {}, {}
  if side.by_session and queue.expiring then
    expire_marked_sessions(queue)
    if queue.expiring then
      return
    end
  end
  if side.by_session then
    left = ended_session_locks(queue, slice, items)
  else
    local ended = take_ended(queue, side, slice)
    note_held_until(queue, tonumber(ended[#ended]))
    for i = 1, #ended, 2 do
      items[#items + 1] = { lock = ended[i], ended = tonumber(ended[i + 1]), position = position_of_lock(ended[i]) }
    end
  end
  if not queue.lazy then
    for _, position in ipairs(redis.call("ZRANGEBYSCORE", side.expiry, "(0", queue.now, "LIMIT", 0, slice)) do
      items[#items + 1] = { position = position }
    end
  end
  table.sort(items, function(a, b) return tonumber(a.position) < tonumber(b.position) end)
  local together = side.by_session and unlock_together(queue, items, true)
  for _, item in ipairs(items) do
    if queue.slice_bytes <= 0 and not together then
      break
    end
    if item.lock then
      end_lock(queue, side, item, true, item.ended + delay_ms)
      if item.session then
        left[item.session] = left[item.session] - 1
      end
    else
      expire_at(queue, side, item.position)
    end
  end
  queue.undecided = nil -- each is decided
  for session, unsettled in pairs(left) do
    if unsettled == 0 then
      end_session(queue, session)
    end
  end
  if queue.slice_bytes <= 0 then
    return
  end
  local visible = redis.call("ZRANGEBYSCORE", side.delayed, "-inf", queue.now, "LIMIT", 0, slice)
  for _, position in ipairs(visible) do
    redis.call("ZREM", side.delayed, position)
    if side.by_session then
      end_delay(queue, side, position)
    else
      redis.call("ZADD", side.ready, position, position)
      side.newly_available = side.newly_available + 1
    end
  end
end
