-- routes: read what decides which copies a topic makes: its subscriptions, and one page of their rules. Pages of one
-- version belong together.
-- Reads: topic, subscriptions, rules.  Writes: nothing.
-- Flags: no-writes
--
-- KEYS[1] topic          hash  options and state of the topic
-- KEYS[2] subscriptions  hash  folded name -> lib/topic/route_flags.lua
-- KEYS[3] rules          zset  rules of all its subscriptions, in the form of lib/topic/rule_member.lua
-- ARGV[1] after          str   the rule to begin after, "" = the first
-- ARGV[2] limit          int   most rules
--
-- Returns
--   OK                version unmatched_to subscriptions rules
--                     subscriptions: name, flags, in turn and in any order, only with the first rules
--   ENTITY_NOT_FOUND
-- Cost: O(subscriptions + limit)
local topic, subscriptions, rules = KEYS[1], KEYS[2], KEYS[3]
local after, limit = ARGV[1], ARGV[2]

local values = redis.call("HMGET", topic, "kind", "version", "unmatched_to")
if values[1] ~= "topic" then
  return { "ENTITY_NOT_FOUND" }
end
local from = after == "" and "-" or "(" .. after
return {
  "OK", values[2], values[3] or "", after == "" and redis.call("HGETALL", subscriptions) or {},
  redis.call("ZRANGE", rules, from, "+", "BYLEX", "LIMIT", 0, limit),
}
