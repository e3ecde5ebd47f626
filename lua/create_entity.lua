-- create_entity: create a queue or a topic unless its name is taken (ENT-2, ENT-6).
-- Reads: entity, suspended, subscriptions, barred.  Writes: entity; of a topic with UnmatchedTo subscriptions,
-- unmatched.
--
-- KEYS[1] entity         hash  options and state
-- KEYS[2] subscriptions  hash  folded name of each subscription, when the name is or was that of a topic
-- KEYS[3] unmatched      hash  options and state of its subscription for what no other one gets: see
--                              lib/topic/ensure_unmatched.lua
-- KEYS[4] barred         string  the highest ticket with which nothing can be made any more: see
--                                lib/entity/bar_ticket.lua
-- KEYS[5] suspended      hash  of a partition that a removal has suspended: see suspend
-- ARGV[1] now     int   0 = server time
-- ARGV[2] kind    str   queue or topic
-- ARGV[3] to      str   UnmatchedTo of a topic, "" = none
-- ARGV[4] ticket  int   that register_name returned
-- ARGV[5] values  int   number of the fields and values that follow
-- ARGV[6..] field value ... field value ...  name and options, and of a topic the version of its routes, a random
--                                            number; then those of unmatched, if it is to be made
--
-- Returns
--   OK                     field value ...
--   ENTITY_ALREADY_EXISTS  field value ...
--   SUSPENDED              removal      see suspend
--   NAME_GONE              ticket       the name may be off the list again: register it with a ticket above this one
--   HALF_DELETED           a topic of this name was deleted, but not yet all its subscriptions: see delete_topic
-- Cost: O(1)
--@include base/now_ms
--@include base/text
--@include base/slice
--@include entity/write_entity
--@include topic/ensure_unmatched
local entity, subscriptions, unmatched, barred, suspended = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local now, kind, to, ticket, values = text(now_ms(ARGV[1])), ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])

if redis.call("EXISTS", entity) == 1 then
  return { "ENTITY_ALREADY_EXISTS", redis.call("HGETALL", entity) }
end
local removal = redis.call("HGET", suspended, "removal")
if removal then
  return { "SUSPENDED", removal }
end
if redis.call("EXISTS", subscriptions) == 1 then
  return { "HALF_DELETED" }
end
redis.call("HLEN", unmatched) -- as in lib/base/check_key_types
local gone = redis.call("GET", barred)
if gone and tonumber(ticket) <= tonumber(gone) then
  return { "NAME_GONE", gone }
end
write_entity(entity, kind, now, slice(ARGV, 6, 5 + values))
redis.call("HSET", entity, "ticket", ticket)
ensure_unmatched(subscriptions, unmatched, now, to, slice(ARGV, 6 + values))
return { "OK", redis.call("HGETALL", entity) }
