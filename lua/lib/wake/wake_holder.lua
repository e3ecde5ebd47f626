-- wake_holder wakes the sidecar in which the holder of a session waits: there is something to receive, one more may be
-- in flight, or the lock is gone.
local function wake_holder(queue, session)
  if queue.any_waiting == nil then
    queue.any_waiting = redis.call("EXISTS", queue.session_waiting) == 1
  end
  local waiting = queue.any_waiting and redis.call("HGET", queue.session_waiting, session)
  if waiting then
    local sidecar, token = string.match(waiting, "^([^:]*):(.*)$")
    redis.call("HDEL", queue.session_waiting, session)
    redis.call("SPUBLISH", queue.session_waiting .. ":" .. sidecar, "1 " .. token)
  end
end
