-- set_version: assign the routes of a topic another version: of a partition, those of its topic (PART-8).
-- Reads: topic.  Writes: topic.
-- Flags: allow-oom
--
-- KEYS[1] topic  hash  options and state of the topic
-- ARGV[1] from   int   the present version
-- ARGV[2] to     int   the version to set
--
-- Returns
--   OK
--   ROUTES_CHANGED    the present version is another one; nothing was done
--   ENTITY_NOT_FOUND
-- Cost: O(1)
local topic, from, to = KEYS[1], ARGV[1], ARGV[2]

local values = redis.call("HMGET", topic, "kind", "version")
if values[1] ~= "topic" then
  return { "ENTITY_NOT_FOUND" }
end
if values[2] ~= from then
  return { "ROUTES_CHANGED" }
end
redis.call("HSET", topic, "version", to)
return { "OK" }
