-- delete_topic: delete a topic and its subscriptions in one step (ENT-8). What the subscriptions hold stays until
-- delete_subscription is called with left for each; as long as subscriptions has a name, no entity of the topic's name
-- can be made.
-- Reads: topic; with unused, also locks and dead letters of every subscription.  Writes: every key of the topic but
-- subscriptions, the
-- entity of every subscription.
-- Flags: allow-oom
--
-- KEYS[1] topic     hash  options and state of the topic
-- KEYS[2] due       zset  scheduled message by when it is due (ms)
-- KEYS[3] barred    string  see lib/entity/bar_ticket.lua
-- KEYS[4..] others  -     every other key of the topic but subscriptions, then the entity of every subscription; with
--                         unused, then keepers (below) of every subscription
-- ARGV[1] now            int  0 = server time
-- ARGV[2] version        int  of the routes that have exactly these subscriptions
-- ARGV[3] subscriptions  int  number of them
-- ARGV[4] unused         int  1: only if neither it nor a subscription was used for AutoDeleteOnIdle (IDLE-3, IDLE-8)
--
-- Returns
--   OK                ticket   of its name: see register_name
--   IN_USE            at_ms    when to look again, 0 = as sweep returns
--   ROUTES_CHANGED    nothing was done
--   ENTITY_NOT_FOUND
-- Cost: O(subscriptions); memory is freed in the background
--@keys keepers locks dead_locks transfers_dead_locks session_locks dead_log transfers_dead_log run_locks
--@include base/now_ms
--@include base/text
--@include entity/touch_at
--@include entity/last_use
--@include entity/unused_at
--@include entity/postpone_removal
--@include entity/bar_ticket
local topic, due, barred = KEYS[1], KEYS[2], KEYS[3]
local now, version, count, unused = now_ms(ARGV[1]), ARGV[2], tonumber(ARGV[3]), ARGV[4] == "1"
local last_key = unused and #KEYS - 7 * count or #KEYS -- of those that are removed

local values = redis.call("HMGET", topic, "kind", "version", "idle_keeps_dead", "ticket")
if values[1] ~= "topic" then
  return { "ENTITY_NOT_FOUND" }
end
if values[2] ~= version then
  return { "ROUTES_CHANGED" }
end

-- of_subscriptions returns the last use of any of them, and whether there are dead letters to keep, by an option of
-- either.
local function of_subscriptions()
  local last, keeps = 0, false
  for i = 1, count do
    local entity, at = KEYS[last_key - count + i], last_key + 7 * (i - 1)
    local locks = { KEYS[at + 1], KEYS[at + 2], KEYS[at + 3], KEYS[at + 4], KEYS[at + 7] }
    last = math.max(last, last_use(entity, due, locks, now))
    local keeps_dead = values[3] == "1" or redis.call("HGET", entity, "idle_keeps_dead") == "1"
    keeps = keeps or (keeps_dead and redis.call("XLEN", KEYS[at + 5]) + redis.call("XLEN", KEYS[at + 6]) > 0)
  end
  return last, keeps
end

if unused then
  local at = unused_at(topic, due, {}, nil, now)
  if not at or at > now then
    return { "IN_USE", "0" }
  end
  local last, keeps = of_subscriptions()
  touch_at(topic, last)
  at = unused_at(topic, due, {}, nil, now)
  if at > now then
    return { "IN_USE", "0" }
  end
  if keeps then
    return { "IN_USE", postpone_removal(topic, now) }
  end
end
local ticket = values[4] or text(now) -- the latter of one that an older version made
redis.call("UNLINK", unpack(KEYS, 1, last_key))
bar_ticket(barred, ticket)
return { "OK", ticket }
