-- get_entity: read an entity's kind, options and times.
-- Reads: entity, suspended.  Writes: nothing.
-- Flags: no-writes
--
-- KEYS[1] entity     hash  options and state
-- KEYS[2] suspended  hash  the same of a partition that a removal has suspended: see suspend
--
-- Returns
--   OK                field value ...
--   SUSPENDED         field value ...
--   ENTITY_NOT_FOUND
-- Cost: O(1)
local entity, suspended = KEYS[1], KEYS[2]

local fields = redis.call("HGETALL", entity)
if #fields > 0 then
  return { "OK", fields }
end
fields = redis.call("HGETALL", suspended)
if #fields > 0 then
  return { "SUSPENDED", fields }
end
return { "ENTITY_NOT_FOUND" }
