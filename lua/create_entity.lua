-- create_entity: make a queue or a topic unless its name is taken (ENT-2, ENT-6).
-- Reads: entity, subscriptions.  Writes: entity.
--
-- KEYS[1] entity         hash  options and state
-- KEYS[2] subscriptions  hash  folded name of each subscription, when the name is or was that of a topic
-- ARGV[1] now     int   0 = server time
-- ARGV[2] kind    str   queue or topic
-- ARGV[3..] field value ...  name and options, and of a topic the version of its routes, a random number
--
-- Returns
--   OK                     field value ...
--   ENTITY_ALREADY_EXISTS  field value ...
--   HALF_DELETED           a topic of this name was deleted, but not yet all its subscriptions: see delete_topic
-- Cost: O(1)
--@include now_ms
--@include text
--@include rest
--@include write_entity
local entity, subscriptions = KEYS[1], KEYS[2]
local now, kind, fields = text(now_ms(ARGV[1])), ARGV[2], rest(ARGV, 3)

if redis.call("EXISTS", entity) == 1 then
  return { "ENTITY_ALREADY_EXISTS", redis.call("HGETALL", entity) }
end
if redis.call("EXISTS", subscriptions) == 1 then
  return { "HALF_DELETED" }
end
write_entity(entity, kind, now, fields)
return { "OK", redis.call("HGETALL", entity) }
