-- decide_outcome decides what becomes of a message whose lock ended without settlement: available at its place
-- (RECV-9), deferred again (DEFER-5), expired (TTL-9, TTL-13), or a dead letter after its last delivery (DC-5). count
-- is how many deliveries failed, nil when this was none (DC-2); the rest is as in return_message.
--@include lock/end_message
--@include expiry/expire_session
--@include log/entry_at
--@include due/expect
--@include base/text
--@include session/put_in_session
--@include entity/note_orphan
local function decide_outcome(queue, side, position, count, visible_at, session, skip_order)
  local expires = redis.call("ZSCORE", side.expiry, position)
  local deferred = redis.call("ZSCORE", side.deferred, position)
  local expired = expires and -expires <= queue.now
  local exhausted = count and side == queue.main and count >= queue.max_delivery_count
  if expired or exhausted then
    if deferred then
      redis.call("ZREM", side.deferred, position)
    end
    local entry = entry_at(side, position)
    if not entry then
      note_orphan(queue, position)
      redis.call("HDEL", side.deliveries, position)
    elseif end_message(queue, side, entry, count, expired, exhausted) then
      expire_session(queue, side, session)
    end
    return
  end
  if expires and deferred and side == queue.main and not queue.expire_deferred then
    redis.call("ZREM", side.expiry, position)
  elseif expires then
    redis.call("ZADD", side.expiry, text(-expires), position)
    expect(queue, -expires)
  end
  if deferred then
    redis.call("ZADD", side.deferred, position, position)
    if session then
      put_in_session(queue, session, "d", position)
    end
  elseif visible_at > queue.now then
    redis.call("ZADD", side.delayed, text(visible_at), position)
    expect(queue, visible_at)
    if session then
      put_in_session(queue, session, skip_order and "x" or "w", position)
      queue.any_delayed = true
    end
  elseif session then
    put_in_session(queue, session, "a", position)
  else
    redis.call("ZADD", side.ready, position, position)
    side.newly_available = side.newly_available + 1
  end
end
