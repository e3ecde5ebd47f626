-- free_together takes the locks off messages whose session's lock has ended, and counts the failed deliveries, before the fate
-- of any is decided. It does so only with SessionExpiryMode SESSION, where the expiry of one takes the others along and none
-- of them is to count as locked (TTL-23). items are { lock, position, session }.
--@include put_in_session
--@include session_member
local function free_together(queue, items, counted)
  if not queue.expires_sessions then
    return
  end
  queue.freed = {}
  for _, item in ipairs(items) do
    if item.lock then
      redis.call("ZREM", queue.main.locks, item.lock)
      item.count = counted and redis.call("HINCRBY", queue.main.deliveries, item.position, 1) or nil
      item.freed = redis.call("ZSCORE", queue.main.deferred, item.position) and "d" or "a"
      queue.freed[item.position] = item.count or 0
      put_in_session(queue, item.session, item.freed, item.position)
    end
  end
end
