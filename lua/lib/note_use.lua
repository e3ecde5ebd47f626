-- note_use stamps that an entity was in use at an instant (CNT-5), unless it was later too. It must exist.
--@include text
local function note_use(entity, at)
  if at > tonumber(redis.call("HGET", entity, "accessed_ms")) then
    redis.call("HSET", entity, "accessed_ms", text(at))
  end
end
