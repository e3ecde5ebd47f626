-- is_behind says that on a queue with SessionExpiryMode SESSION there is more to clear away than one script does: until it is, no
-- message must be handed out, for one of its session may have expired (TTL-23).
local function is_behind(queue)
  return queue.expires_sessions and queue.alarm > 0 and queue.alarm <= queue.now
end
