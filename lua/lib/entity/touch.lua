-- touch stamps that an entity is used now (CNT-5, IDLE-5, IDLE-8).
--@include base/text
local function touch(entity, now)
  redis.call("HSET", entity, "accessed_ms", text(now))
end
