-- wake_holders wakes the sidecars in which the holders of sessions wait: there is something to receive, one more may be
-- in flight, or the lock is gone.
--@include base/in_pieces
local function wake_holders(queue, sessions)
  if #sessions == 0 or redis.call("EXISTS", queue.session_waiting) == 0 then
    return
  end
  local woken, at = {}, 0
  in_pieces(sessions, function(...)
    for _, waiting in ipairs(redis.call("HMGET", queue.session_waiting, ...)) do
      at = at + 1
      if waiting then
        local sidecar, token = string.match(waiting, "^([^:]*):(.*)$")
        woken[#woken + 1] = sessions[at]
        redis.call("SPUBLISH", queue.session_waiting .. ":" .. sidecar, "1 " .. token)
      end
    end
  end)
  in_pieces(woken, function(...) redis.call("HDEL", queue.session_waiting, ...) end)
end
