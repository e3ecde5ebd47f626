-- bar_name: if a name has no entity, bar the tickets up to this one, so that the name can be taken off the namespace's
-- list (ENT-17). A caller that crashed between two steps left it there.
-- Reads: entity, subscriptions, suspended.  Writes: barred.
-- Flags: allow-oom
--
-- KEYS[1] entity         hash    options and state
-- KEYS[2] subscriptions  hash    of a topic: those whose deletion is not over are left here
-- KEYS[3] barred         string  see lib/entity/bar_ticket.lua
-- KEYS[4] suspended      hash    of a partition that a removal has suspended: see suspend
-- ARGV[1] ticket  int  of the name: see register_name
--
-- Returns
--   OK
--   IN_USE  there is an entity, or what is left of one
-- Cost: O(1)
--@include entity/bar_ticket
local entity, subscriptions, barred, suspended, ticket = KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[1]

if redis.call("EXISTS", entity, subscriptions, suspended) > 0 then
  return { "IN_USE" }
end
if tonumber(redis.call("GET", barred) or "0") < tonumber(ticket) then
  bar_ticket(barred, ticket)
end
return { "OK" }
