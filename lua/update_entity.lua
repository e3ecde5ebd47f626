-- update_entity: set some options of an entity (ENT-7, ENT-10) and make waiting receives look again (STAT-5).
-- Reads: entity, subscriptions.  Writes: entity, waiting, dead_waiting, session_waiting, transfers; of a subscription's
-- topic entity,
-- subscriptions.
--
-- KEYS[1] entity        hash  options and state
-- KEYS[2] waiting       zset  sidecar by since when it waits (ms)
-- KEYS[3] dead_waiting  zset  as waiting, of the dead-letter queue
-- KEYS[4] session_waiting  hash  session -> where its holder waits
-- KEYS[5] session_locks    zset  held session by the end of its lock (ms)
-- KEYS[6] owner            hash  entity of a subscription's topic, else as KEYS[1]
-- KEYS[7] subscriptions    hash  of a topic, or of a subscription's topic: folded name -> lib/topic/route_flags.lua
-- KEYS[8] transfers_entity         hash  options and state of its transfer dead-letter queue
-- KEYS[9] transfers_dead_waiting zset  as waiting, of that one
-- KEYS[10] unmatched        hash  options and state of a topic's subscription for what no other one gets
-- KEYS[11] states_due       zset  session that became idle by when its state is to be forgotten (ms)
-- ARGV[1] now           int   0 = server time
-- ARGV[2] kind          str   what the entity must be
-- ARGV[3] name          str   of a subscription: its folded name
-- ARGV[4] to            str   of a topic: the UnmatchedTo to set, "" = none, or it stays
-- ARGV[5] version       int   of the routes from now on, if this changes them, a random number
-- ARGV[6] values        int   number of the fields and values that follow
-- ARGV[7..?] field value ... field value ...  the options to set, then name and options of unmatched, if it is to be
--                                             made
--
-- Returns
--   OK                alarm fields
--   ENTITY_NOT_FOUND
--   PROPERTY_IMMUTABLE  field
-- Cost: O(waiting sidecars)
--@include base/now_ms
--@include base/text
--@include base/slice
--@include wake/wake_all
--@include wake/wake_all_holders
--@include topic/route_flags
--@include transfer/share_options
--@include topic/ensure_unmatched
--@include entity/forward_path
--@include transfer/call_forwarder
--@include entity/write_idle_alarm
--@include entity/plain_kind
--@include entity/mark_fenced
local entity, waiting, dead_waiting, session_waiting = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local session_locks, owner, subscriptions, transfers_entity, transfers_dead_waiting = KEYS[5], KEYS[6], KEYS[7],
  KEYS[8], KEYS[9]
local now, kind, name, to = text(now_ms(ARGV[1])), ARGV[2], ARGV[3], ARGV[4]
local unmatched, states_due, version, values = KEYS[10], KEYS[11], ARGV[5], tonumber(ARGV[6])
local fields = slice(ARGV, 7, 6 + values)

if plain_kind(redis.call("HGET", entity, "kind")) ~= kind then
  return { "ENTITY_NOT_FOUND" }
end
for i = 1, #fields, 2 do
  local immutable = fields[i] == "requires_duplicate_detection" or fields[i] == "partitioned"
    or fields[i] == "requires_session" or fields[i] == "partitions"
  local present = redis.call("HGET", entity, fields[i]) or (fields[i] == "partitions" and "1")
  if immutable and present ~= fields[i + 1] then
    return { "PROPERTY_IMMUTABLE", fields[i] }
  end
end
if kind ~= "queue" then
  for _, hash in ipairs({ owner, subscriptions, unmatched }) do
    redis.call("HLEN", hash) -- as in lib/base/check_key_types
  end
end
redis.call("HLEN", transfers_entity)
local unmatched_to = redis.call("HGET", entity, "unmatched_to")
redis.call("HSET", entity, "updated_ms", now, "accessed_ms", now, unpack(fields))
mark_fenced(entity)
write_idle_alarm(entity, tonumber(now))
if kind == "topic" then
  ensure_unmatched(subscriptions, unmatched, now, to, slice(ARGV, 7 + values))
  if redis.call("HGET", entity, "unmatched_to") ~= unmatched_to then
    redis.call("HSET", entity, "version", version)
  end
end
if kind == "subscription" then
  local flags = route_flags(entity)
  if redis.call("HGET", subscriptions, name) ~= flags then
    redis.call("HSET", subscriptions, name, flags)
    redis.call("HSET", owner, "version", version)
  end
end
if redis.call("EXISTS", transfers_entity) == 1 then
  share_options(entity, transfers_entity)
  wake_all(transfers_dead_waiting)
end
local alarm = "0"
for i = 1, #fields, 2 do
  if fields[i] == "session_state_ttl_ms" and tonumber(fields[i + 1]) < 0 then
    redis.call("UNLINK", states_due) -- the states of sessions at rest are kept from now on (SESS-33c)
  end
  if fields[i] == "duplicate_window_ms" then
    local present = tonumber(redis.call("HGET", entity, "alarm_ms") or "0")
    if present == 0 or present > tonumber(now) then
      alarm = now -- what is there already may be due earlier now
      redis.call("HSET", entity, "alarm_ms", alarm)
    end
  end
  if (fields[i] == "forward_to" or fields[i] == "forward_dead_to") and forward_path(fields[i + 1]) then
    alarm = call_forwarder({ entity = entity, now = tonumber(now) }, alarm) -- of what is there already
  end
end
wake_all(waiting)
wake_all(dead_waiting)
wake_all_holders(session_waiting, session_locks)
return { "OK", alarm, redis.call("HGETALL", entity) }
