-- begin_removal: begin to delete an idle queue with several partitions (IDLE-8): note in its record which removal may
-- complete. Another one that was under way does not complete any more. See docs/decisions/0056.
-- Reads: entity, due.  Writes: entity.
-- Flags: allow-oom
--
-- KEYS[1] entity  hash  the record
-- KEYS[2] due     zset  which a record does not have
-- ARGV[1] now          int  0 = server time
-- ARGV[2] kind         str  as stored: partitioned_queue
-- ARGV[3] incarnation  int  that the record must have
-- ARGV[4] removal      int  a random number
--
-- Returns
--   OK
--   IN_USE            after_ms  when to look again, 0 = never
--   ENTITY_NOT_FOUND
-- Cost: O(1)
--@include base/now_ms
--@include base/text
--@include entity/history
--@include entity/unused_at
local entity, due = KEYS[1], KEYS[2]
local now, kind, incarnation, removal = now_ms(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]

local present = redis.call("HMGET", entity, "kind", "incarnation")
if present[1] ~= kind or present[2] ~= incarnation then
  return { "ENTITY_NOT_FOUND" }
end
local at = unused_at(entity, due, {}, nil, now)
if not at or at > now then
  redis.call("HDEL", entity, "removal", "removal_in")
  return { "IN_USE", at and text(at - now) or "0" }
end
redis.call("HSET", entity, "removal", removal, "removal_in", history())
return { "OK" }
