-- cancel_removal: let a removal of an idle queue with several partitions not complete any more (IDLE-8): a partition is
-- used, or has forgotten that it was suspended.
-- Reads: entity.  Writes: entity.
-- Flags: allow-oom
--
-- KEYS[1] entity  hash  the record
-- ARGV[1] incarnation  int  that the record must have
-- ARGV[2] removal      int  see begin_removal; "" = any
--
-- Returns
--   OK
--   ENTITY_NOT_FOUND
-- Cost: O(1)
local entity, incarnation, removal = KEYS[1], ARGV[1], ARGV[2]

local present = redis.call("HMGET", entity, "incarnation", "removal")
if present[1] ~= incarnation then
  return { "ENTITY_NOT_FOUND" }
end
if present[2] and (removal == "" or present[2] == removal) then
  redis.call("HDEL", entity, "removal", "removal_in")
end
return { "OK" }
