-- update_entity: set some options of an entity (ENT-7, ENT-10) and make waiting receives look again (STAT-5).
-- Reads: entity, subscriptions.  Writes: entity, waiting, dead_waiting, session_waiting; of a subscription's topic entity, subscriptions.
--
-- KEYS[1] entity        hash  options and state
-- KEYS[2] waiting       zset  sidecar by since when it waits (ms)
-- KEYS[3] dead_waiting  zset  as waiting, of the dead-letter queue
-- KEYS[4] session_waiting  hash  session -> where its holder waits
-- KEYS[5] session_locks    zset  held session by the end of its lock (ms)
-- KEYS[6] owner            hash  entity of a subscription's topic, else as KEYS[1]
-- KEYS[7] subscriptions    hash  of a subscription's topic: folded name -> lib/route_flags.lua
-- ARGV[1] now           int   0 = server time
-- ARGV[2] kind          str   what the entity must be
-- ARGV[3] name          str   of a subscription: its folded name
-- ARGV[4..?] field value ...  the options to set
--
-- Returns
--   OK                field value ...
--   ENTITY_NOT_FOUND
--   PROPERTY_IMMUTABLE  field
-- Cost: O(waiting sidecars)
--@include now_ms
--@include text
--@include rest
--@include wake_all
--@include wake_holders
--@include route_flags
--@include alarm_unused
local entity, waiting, dead_waiting, session_waiting = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local session_locks, owner, subscriptions = KEYS[5], KEYS[6], KEYS[7]
local now, kind, name, fields = text(now_ms(ARGV[1])), ARGV[2], ARGV[3], rest(ARGV, 4)

if redis.call("HGET", entity, "kind") ~= kind then
  return { "ENTITY_NOT_FOUND" }
end
for i = 1, #fields, 2 do
  local immutable = fields[i] == "requires_duplicate_detection" or fields[i] == "partitioned" or fields[i] == "requires_session"
  if immutable and redis.call("HGET", entity, fields[i]) ~= fields[i + 1] then
    return { "PROPERTY_IMMUTABLE", fields[i] }
  end
end
redis.call("HSET", entity, "updated_ms", now, "accessed_ms", now, unpack(fields))
alarm_unused(entity, tonumber(now))
if kind == "subscription" then
  local flags = route_flags(entity)
  if redis.call("HGET", subscriptions, name) ~= flags then
    redis.call("HSET", subscriptions, name, flags)
    redis.call("HINCRBY", owner, "version", 1)
  end
end
wake_all(waiting)
wake_all(dead_waiting)
wake_holders(session_waiting, session_locks)
return { "OK", redis.call("HGETALL", entity) }
