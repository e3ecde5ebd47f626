-- is_behind reports whether a queue with SessionExpiryMode SESSION has more to clear than one script does. Until that
-- is done nothing may be handed out, because one of its session may have expired (TTL-23).
local function is_behind(queue)
  return queue.expiring ~= nil or (queue.expires_sessions and queue.alarm > 0 and queue.alarm <= queue.now)
end
