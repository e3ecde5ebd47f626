-- unlock_together unlocks messages whose session lock ended, and counts the failed deliveries, before the outcome of
-- any is decided. It does so only with SessionExpiryMode SESSION, where one that expires takes along the others, and
-- none may count as locked (TTL-23). Returns whether it did.
--@include session/put_in_session
local function unlock_together(queue, items, counted)
  if not queue.expires_sessions then
    return false
  end
  queue.undecided, queue.undecided_count = {}, #items
  for _, item in ipairs(items) do
    if item.lock then
      redis.call("ZREM", queue.main.locks, item.lock)
      item.count = counted and redis.call("HINCRBY", queue.main.deliveries, item.position, 1) or nil
      item.state = redis.call("ZSCORE", queue.main.deferred, item.position) and "d" or "a"
      queue.undecided[item.position] = item.count or 0
      put_in_session(queue, item.session, item.state, item.position)
    end
  end
  return true
end
