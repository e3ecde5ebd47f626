-- wake_next wakes the sidecar that has waited longest, because count messages came. If it is not heard, or the sidecar
-- hangs (wait_here), it wakes the next one. A woken sidecar leaves the list, so a crashed one costs one script once.
local function wake_next(waiting, count, now)
  while true do
    local first = redis.call("ZPOPMIN", waiting)
    local sidecar, since = first[1], first[2]
    if not sidecar or (redis.call("SPUBLISH", waiting .. ":" .. sidecar, count) > 0 and now - since <= 20000) then
      return
    end
  end
end
