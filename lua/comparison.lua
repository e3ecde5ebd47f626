-- comparison: read what the present history of a server is called, and whether a partition was compared with its
-- record in it (DUR-4).
-- Reads: entity.  Writes: nothing.
-- Flags: no-writes
--
-- KEYS[1] entity  hash  options and state of the partition
--
-- Returns
--   OK                history is_compared
--   ENTITY_NOT_FOUND
-- Cost: O(1)
--@include entity/history
local entity = KEYS[1]

local values = redis.call("HMGET", entity, "kind", "compared_in")
if not values[1] then
  return { "ENTITY_NOT_FOUND" }
end
local present = history()
return { "OK", present, values[2] == present and 1 or 0 }
