-- create_entity: make a queue or a topic unless its name is taken (ENT-2, ENT-6).
-- Reads: entity, subscriptions.  Writes: entity; of a topic with UnmatchedTo subscriptions, unmatched.
--
-- KEYS[1] entity         hash  options and state
-- KEYS[2] subscriptions  hash  folded name of each subscription, when the name is or was that of a topic
-- KEYS[3] unmatched      hash  options and state of its subscription for what no other one gets: see lib/keep_unmatched.lua
-- ARGV[1] now     int   0 = server time
-- ARGV[2] kind    str   queue or topic
-- ARGV[3] to      str   UnmatchedTo of a topic, "" = none
-- ARGV[4] values  int   number of the fields and values that follow
-- ARGV[5..] field value ... field value ...  name and options, and of a topic the version of its routes, a random number; then those of
--           unmatched, if it is to be made
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
--@include keep_unmatched
local entity, subscriptions, unmatched = KEYS[1], KEYS[2], KEYS[3]
local now, kind, to, values = text(now_ms(ARGV[1])), ARGV[2], ARGV[3], tonumber(ARGV[4])

if redis.call("EXISTS", entity) == 1 then
  return { "ENTITY_ALREADY_EXISTS", redis.call("HGETALL", entity) }
end
if redis.call("EXISTS", subscriptions) == 1 then
  return { "HALF_DELETED" }
end
write_entity(entity, kind, now, rest(ARGV, 5, 4 + values))
keep_unmatched(subscriptions, unmatched, now, to, rest(ARGV, 5 + values))
return { "OK", redis.call("HGETALL", entity) }
