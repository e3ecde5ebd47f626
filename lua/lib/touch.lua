-- touch stamps activity on an entity (CNT-5, IDLE-5), at most once a second so that idle polling costs no writes.
--@include text
local function touch(entity, accessed_ms, now)
  if now - tonumber(accessed_ms) >= 1000 then
    redis.call("HSET", entity, "accessed_ms", text(now))
  end
end
