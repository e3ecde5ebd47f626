-- mark_fenced changes the kind of a queue or subscription to fenced_queue or fenced_subscription if it asks for a
-- durability of its own, and to the plain one if it does not. Scripts of the hot path read the kind anyway, so those of
-- a plain kind cost them nothing.
--@include entity/plain_kind
local function mark_fenced(entity)
  local values = redis.call("HMGET", entity, "kind", "durability")
  local kind = plain_kind(values[1])
  if kind ~= "queue" and kind ~= "subscription" then
    return
  end
  if (values[2] or "SIDECAR") ~= "SIDECAR" then
    kind = "fenced_" .. kind
  end
  redis.call("HSET", entity, "kind", kind)
end
