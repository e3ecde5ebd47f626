-- get_entity: read an entity's kind, options and times.
-- Reads: entity.  Writes: nothing.
-- Flags: no-writes
--
-- KEYS[1] entity  hash  options and state
--
-- Returns
--   OK                field value ...
--   ENTITY_NOT_FOUND
-- Cost: O(1)
local entity = KEYS[1]

local fields = redis.call("HGETALL", entity)
if #fields == 0 then
  return { "ENTITY_NOT_FOUND" }
end
return { "OK", fields }
