-- wake_all makes every waiting sidecar look again, because the entity itself has changed.
local function wake_all(waiting)
  for _, sidecar in ipairs(redis.call("ZRANGE", waiting, 0, -1)) do
    redis.call("SPUBLISH", waiting .. ":" .. sidecar, 0)
  end
  redis.call("DEL", waiting)
end
