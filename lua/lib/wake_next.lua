-- wake_next tells the sidecar that has waited longest that count messages came. One that is gone does not hear it, so
-- the next one is told.
local function wake_next(waiting, count)
  for _ = 1, 100 do
    local sidecar = redis.call("ZPOPMIN", waiting)[1]
    if not sidecar or redis.call("SPUBLISH", waiting .. ":" .. sidecar, count) > 0 then
      return
    end
  end
end
