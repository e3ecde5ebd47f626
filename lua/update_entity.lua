-- update_entity: set some options of an entity (ENT-7, ENT-10) and make waiting receives look again (STAT-5).
-- Reads: entity, subscriptions.  Writes: entity, waiting, dead_waiting, session_waiting, transfers; of a subscription's topic entity,
-- subscriptions.
--
-- KEYS[1] entity        hash  options and state
-- KEYS[2] waiting       zset  sidecar by since when it waits (ms)
-- KEYS[3] dead_waiting  zset  as waiting, of the dead-letter queue
-- KEYS[4] session_waiting  hash  session -> where its holder waits
-- KEYS[5] session_locks    zset  held session by the end of its lock (ms)
-- KEYS[6] owner            hash  entity of a subscription's topic, else as KEYS[1]
-- KEYS[7] subscriptions    hash  of a topic, or of a subscription's topic: folded name -> lib/route_flags.lua
-- KEYS[8] transfers         hash  options and state of its transfer dead-letter queue
-- KEYS[9] transfers_waiting zset  as waiting, of that one
-- KEYS[10] unmatched        hash  options and state of a topic's subscription for what no other one gets
-- ARGV[1] now           int   0 = server time
-- ARGV[2] kind          str   what the entity must be
-- ARGV[3] name          str   of a subscription: its folded name
-- ARGV[4] to            str   of a topic: the UnmatchedTo to set, "" = none, or it stays
-- ARGV[5] values        int   number of the fields and values that follow
-- ARGV[6..?] field value ... field value ...  the options to set, then name and options of unmatched, if it is to be made
--
-- Returns
--   OK                alarm fields
--   ENTITY_NOT_FOUND
--   PROPERTY_IMMUTABLE  field
-- Cost: O(waiting sidecars)
--@include now_ms
--@include text
--@include rest
--@include wake_all
--@include wake_holders
--@include route_flags
--@include share_options
--@include keep_unmatched
--@include forwards
--@include call_forwarder
local entity, waiting, dead_waiting, session_waiting = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local session_locks, owner, subscriptions, transfers, transfers_waiting = KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local now, kind, name, to = text(now_ms(ARGV[1])), ARGV[2], ARGV[3], ARGV[4]
local unmatched, values = KEYS[10], tonumber(ARGV[5])
local fields = rest(ARGV, 6, 5 + values)

if redis.call("HGET", entity, "kind") ~= kind then
  return { "ENTITY_NOT_FOUND" }
end
for i = 1, #fields, 2 do
  local immutable = fields[i] == "requires_duplicate_detection" or fields[i] == "partitioned" or fields[i] == "requires_session"
  if immutable and redis.call("HGET", entity, fields[i]) ~= fields[i + 1] then
    return { "PROPERTY_IMMUTABLE", fields[i] }
  end
end
local unmatched_to = redis.call("HGET", entity, "unmatched_to")
redis.call("HSET", entity, "updated_ms", now, "accessed_ms", now, unpack(fields))
if kind == "topic" then
  keep_unmatched(subscriptions, unmatched, now, to, rest(ARGV, 6 + values))
  if redis.call("HGET", entity, "unmatched_to") ~= unmatched_to then
    redis.call("HINCRBY", entity, "version", 1)
  end
end
if kind == "subscription" then
  local flags = route_flags(entity)
  if redis.call("HGET", subscriptions, name) ~= flags then
    redis.call("HSET", subscriptions, name, flags)
    redis.call("HINCRBY", owner, "version", 1)
  end
end
if redis.call("EXISTS", transfers) == 1 then
  share_options(entity, transfers)
  wake_all(transfers_waiting)
end
local alarm = "0"
for i = 1, #fields, 2 do
  if (fields[i] == "forward_to" or fields[i] == "forward_dead_to") and forwards(fields[i + 1]) then
    alarm = call_forwarder({ entity = entity, now = tonumber(now) }, alarm) -- of what is there already
  end
end
wake_all(waiting)
wake_all(dead_waiting)
wake_holders(session_waiting, session_locks)
return { "OK", alarm, redis.call("HGETALL", entity) }
