-- wake_all makes every waiting sidecar look again, because the entity has changed. A key that is not a list does not
-- stop a deletion.
local function wake_all(waiting)
  for _, sidecar in ipairs(redis.pcall("ZRANGE", waiting, 0, -1)) do
    redis.call("SPUBLISH", waiting .. ":" .. sidecar, 0)
  end
  redis.call("DEL", waiting)
end
