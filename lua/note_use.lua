-- note_use: stamp that an entity was in use until some time ago without a call: a receive waited, or a stream was open
-- (IDLE-5).
-- Reads: entity.  Writes: entity.
-- Flags: allow-oom
--
-- KEYS[1] entity  hash  options and state of a queue or subscription
-- ARGV[1] now     int  0 = server time
-- ARGV[2] ago_ms  int  how long ago that was
--
-- Returns
--   OK
--   ENTITY_NOT_FOUND
-- Cost: O(1)
--@include base/now_ms
--@include entity/touch_at
local entity, now, ago_ms = KEYS[1], now_ms(ARGV[1]), tonumber(ARGV[2])

if redis.call("EXISTS", entity) == 0 then
  return { "ENTITY_NOT_FOUND" }
end
touch_at(entity, now - ago_ms)
return { "OK" }
