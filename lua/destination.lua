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
local entity = KEYS[1]

local values = redis.call("HMGET", entity, "kind", "name", "incarnation")
if values[1] ~= "queue" and values[1] ~= "topic" then
  return { "ENTITY_NOT_FOUND" }
end
return { "OK", values[1], values[2], values[3] }
