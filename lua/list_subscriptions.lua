-- list_subscriptions: read which subscriptions a topic has.
-- Reads: topic, subscriptions.  Writes: nothing.
-- Flags: no-writes
--
-- KEYS[1] topic          hash  options and state of the topic
-- KEYS[2] subscriptions  hash  folded name -> lib/topic/route_flags.lua
--
-- Returns
--   OK                version, then the folded names in any order
--   HALF_DELETED      the topic is deleted; the folded names of the subscriptions of which something is left
--   ENTITY_NOT_FOUND
-- Cost: O(subscriptions)
local topic, subscriptions = KEYS[1], KEYS[2]

local values = redis.call("HMGET", topic, "kind", "version")
local names = redis.call("HKEYS", subscriptions)
if values[1] == "topic" then
  return { "OK", values[2], unpack(names) }
end
if not values[1] and #names > 0 then
  return { "HALF_DELETED", unpack(names) }
end
return { "ENTITY_NOT_FOUND" }
