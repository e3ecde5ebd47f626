-- wake_holders makes all holders of sessions that wait look again, and all who wait for a session to be free, because the
-- entity itself has changed.
local function wake_holders(session_waiting, session_locks)
  for _, waiting in ipairs(redis.call("HVALS", session_waiting)) do
    local sidecar, token = string.match(waiting, "^([^:]*):(.*)$")
    redis.call("SPUBLISH", session_waiting .. ":" .. sidecar, "0 " .. token)
  end
  redis.call("DEL", session_waiting)
  redis.call("SPUBLISH", session_locks .. ":ended", "0")
end
