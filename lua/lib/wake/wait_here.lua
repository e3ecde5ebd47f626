-- wait_here puts a sidecar on a waiting list, where it keeps its place for 5 s. It looks again after 10 s at the latest
-- (recheck_ms), so the place of a live one is never older than 15 s. Places older than 20 s are removed: the list has
-- only sidecars that looked within that time.
local function wait_here(waiting, now, sidecar)
  local since = redis.call("ZSCORE", waiting, sidecar)
  if not since or now - since > 5000 then
    redis.call("ZADD", waiting, now, sidecar)
  end
  redis.call("ZREMRANGEBYSCORE", waiting, "-inf", "(" .. string.format("%.0f", now - 20000))
end
