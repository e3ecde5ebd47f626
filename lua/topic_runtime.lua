-- topic_runtime: count a topic (CNT-1).
-- Reads: due, topic, entity of every subscription.  Writes: nothing.
-- Flags: no-writes
--
-- KEYS[1] due    zset  number of its scheduled messages by when they are due (ms)
-- KEYS[2..] all  hash  entity of the topic, then of every subscription
-- ARGV[1] version  int  of the routes that have exactly these subscriptions
--
-- Returns
--   OK                scheduled bytes created_ms updated_ms accessed_ms sequence
--   ROUTES_CHANGED
--   ENTITY_NOT_FOUND
-- Cost: O(subscriptions)
--@include base/text
--@include entity/held_bytes
local due, topic, version = KEYS[1], KEYS[2], ARGV[1]

local values = redis.call("HMGET", topic, "kind", "version", "created_ms", "updated_ms", "accessed_ms", "sequence")
if values[1] ~= "topic" then
  return { "ENTITY_NOT_FOUND" }
end
if values[2] ~= version then
  return { "ROUTES_CHANGED" }
end
return {
  "OK", redis.call("ZCARD", due), text((held_bytes(KEYS, 2, #KEYS))), values[3], values[4], values[5], values[6] or "0",
}
