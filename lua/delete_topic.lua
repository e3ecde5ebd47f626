-- delete_topic: make a topic and its subscriptions cease to exist, in one step (ENT-8). What the subscriptions hold is still
-- there: as long as subscriptions has their names, nobody can make an entity of this name, and delete_subscription has to be called
-- with left for each.
-- Reads: topic.  Writes: every key of the topic but subscriptions, the entity of every subscription.
-- Flags: allow-oom
--
-- KEYS[1] topic     hash  options and state of the topic
-- KEYS[2..] others  -     every other key of the topic but subscriptions, then the entity of every subscription
-- ARGV[1] now      int  0 = server time
-- ARGV[2] version  int  of the routes that have exactly these subscriptions
--
-- Returns
--   OK                deleted_ms
--   ROUTES_CHANGED    nothing was done
--   ENTITY_NOT_FOUND
-- Cost: O(subscriptions); memory is freed in the background
--@include now_ms
--@include text
local topic = KEYS[1]
local now, version = now_ms(ARGV[1]), ARGV[2]

local values = redis.call("HMGET", topic, "kind", "version")
if values[1] ~= "topic" then
  return { "ENTITY_NOT_FOUND" }
end
if values[2] ~= version then
  return { "ROUTES_CHANGED" }
end
redis.call("UNLINK", unpack(KEYS))
return { "OK", text(now) }
