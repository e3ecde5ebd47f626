-- touch_at stamps that an entity was used at an instant (CNT-5), unless it was used later. It must exist.
--@include base/text
local function touch_at(entity, at)
  if at > tonumber(redis.call("HGET", entity, "accessed_ms")) then
    redis.call("HSET", entity, "accessed_ms", text(at))
  end
end
