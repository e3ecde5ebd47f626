-- wake_all_holders makes all waiting holders of sessions look again, and all who wait for a session to be free, because
-- the entity has changed.
local function wake_all_holders(session_waiting, session_locks)
  for _, waiting in ipairs(redis.pcall("HVALS", session_waiting)) do
    local sidecar, token = string.match(waiting, "^([^:]*):(.*)$")
    redis.call("SPUBLISH", session_waiting .. ":" .. sidecar, "0 " .. token)
  end
  redis.call("DEL", session_waiting)
  redis.call("SPUBLISH", session_locks .. ":ended", "0")
end
