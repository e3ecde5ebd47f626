-- destination: find the queue or topic that messages are forwarded to.
-- Reads: entity.  Writes: nothing.
-- Flags: no-writes
--
-- KEYS[1] entity  hash  options and state
--
-- Returns
--   OK                kind name incarnation
--   ENTITY_NOT_FOUND
-- Cost: O(1)
--@include entity/plain_kind
local entity = KEYS[1]

local values = redis.call("HMGET", entity, "kind", "name", "incarnation")
local kind = plain_kind(values[1])
if kind ~= "queue" and kind ~= "topic" then
  return { "ENTITY_NOT_FOUND" }
end
return { "OK", kind, values[2], values[3] }
