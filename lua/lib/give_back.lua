-- give_back decides what becomes of a message whose lock has ended without settlement: available again at its place (RECV-9)
-- or deferred again (DEFER-5), expired (TTL-9, TTL-13), or dead-lettered because that was its last delivery (DC-5). The
-- lock must be gone. counted says whether this was a delivery that failed (DC-1) or none at all (DC-2); before visible_at the
-- message is not received (SETTLE-11). session is its session, on a side that has sessions; with skip_order a delay does not
-- hold up the messages behind it there.
--@include bury_entry
--@include expire_entry
--@include entry_at
--@include expect
--@include text
--@include put_in_session
local function give_back(queue, side, position, counted, visible_at, session, skip_order)
  local count = counted and redis.call("HINCRBY", side.deliveries, position, 1) or 0
  local expires = redis.call("ZSCORE", side.expiry, position)
  local deferred = redis.call("ZSCORE", side.deferred, position)
  local expired = expires and -expires <= queue.now
  local exhausted = counted and side == queue.main and count >= queue.max_delivery_count
  if expired or exhausted then
    if deferred then
      redis.call("ZREM", side.deferred, position)
    end
    local entry = entry_at(side.log, position)
    if not entry then
      redis.call("HDEL", side.deliveries, position)
    elseif expired and (queue.dead_letter_expired or not exhausted) then
      expire_entry(queue, side, entry)
    else
      bury_entry(queue, entry, count, "m", "MaxDeliveryCountExceeded", "the message was delivered " .. count
        .. " times without being settled; the queue permits " .. queue.max_delivery_count)
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
