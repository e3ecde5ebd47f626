-- defer_message sets a message aside whose lock was ended, until it is received by number (SETTLE-9, DEFER-1). session
-- is its session, on a side with sessions.
--@include due/expect
--@include session/put_in_session
local function defer_message(queue, side, position, session)
  redis.call("ZADD", side.deferred, position, position)
  if session then
    put_in_session(queue, session, "d", position)
  end
  local expires = redis.call("ZSCORE", side.expiry, position)
  if not expires then
    return
  end
  if side == queue.main and not queue.expire_deferred then
    redis.call("ZREM", side.expiry, position) -- it expires when it is asked for (TTL-18)
  else
    redis.call("ZADD", side.expiry, -expires, position)
    expect(queue, -expires)
  end
end
