-- touch stamps activity on an entity (CNT-5, IDLE-5, IDLE-8).
--@include text
local function touch(entity, now)
  redis.call("HSET", entity, "accessed_ms", text(now))
end
