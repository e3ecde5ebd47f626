-- lacks_fence returns the reply that refuses a verb because its caller waits for another durability than the entity
-- asks for (DUR-1), nil if it may go on. kind is that of the entity: a queue or subscription that is not plain asks for
-- a level of its own (lib/entity/mark_fenced). awaited is what now_ms returns: the level that the caller waits for, nil
-- for that of its sidecar.
local function lacks_fence(entity, kind, awaited)
  if not awaited and (kind == "queue" or kind == "subscription") then
    return nil
  end
  local level = redis.call("HGET", entity, "durability") or "SIDECAR"
  return level ~= (awaited or "SIDECAR") and { "NEEDS_FENCE", level } or nil
end
