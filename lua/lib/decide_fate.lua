-- decide_fate decides what becomes of a message whose lock has ended without settlement: available again at its place (RECV-9) or
-- deferred again (DEFER-5), expired (TTL-9, TTL-13), or dead-lettered because that was its last delivery (DC-5). count is
-- how many deliveries have failed, nil when this was none (DC-2); the rest as in give_back.
--@include end_entry
--@include expire_rest
--@include entry_at
--@include expect
--@include text
--@include put_in_session
local function decide_fate(queue, side, position, count, visible_at, session, skip_order)
  local expires = redis.call("ZSCORE", side.expiry, position)
  local deferred = redis.call("ZSCORE", side.deferred, position)
  local expired = expires and -expires <= queue.now
  local exhausted = count and side == queue.main and count >= queue.max_delivery_count
  if expired or exhausted then
    if deferred then
      redis.call("ZREM", side.deferred, position)
    end
    local entry = entry_at(side.log, position)
    if not entry then
      redis.call("HDEL", side.deliveries, position)
    elseif end_entry(queue, side, entry, count, expired, exhausted) then
      expire_rest(queue, side, session)
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
    side.came = side.came + 1
  end
end
