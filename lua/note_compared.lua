-- note_compared: note that a partition was compared with its record, which was read in a history of the server (DUR-4).
-- Reads: entity.  Writes: entity.
-- Flags: allow-oom
--
-- KEYS[1] entity   hash  options and state of the partition
-- ARGV[1] history  str   the one in which the comparison began
--
-- Returns
--   OK
--   OTHER_HISTORY     the server has another one by now; nothing was done
--   ENTITY_NOT_FOUND
-- Cost: O(1)
--@include entity/history
local entity, compared_in = KEYS[1], ARGV[1]

if redis.call("HEXISTS", entity, "kind") == 0 then
  return { "ENTITY_NOT_FOUND" }
end
if history() ~= compared_in then
  return { "OTHER_HISTORY" }
end
redis.call("HSET", entity, "compared_in", compared_in)
return { "OK" }
