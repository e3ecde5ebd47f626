-- get_suspended: read the options and times of a partition that a removal has suspended (IDLE-8). It is a script of its
-- own because one with two keys is refused while their slot moves to another server, and get_entity is not.
-- Reads: suspended.  Writes: nothing.
-- Flags: no-writes
--
-- KEYS[1] suspended  hash  options and state: see suspend
--
-- Returns
--   OK                fields removal
--   ENTITY_NOT_FOUND
-- Cost: O(1)
local suspended = KEYS[1]

local fields = redis.call("HGETALL", suspended)
if #fields == 0 then
  return { "ENTITY_NOT_FOUND" }
end
return { "OK", fields, redis.call("HGET", suspended, "removal") }
