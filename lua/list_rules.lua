-- list_rules: read rules of a subscription in order of their folded names (RULE-9), or one of them.
-- Reads: entity, rules.  Writes: nothing.
-- Flags: no-writes
--
-- KEYS[1] entity  hash  options and state of the subscription
-- KEYS[2] rules   zset  rules of all subscriptions of the topic, in the form of lib/topic/rule_member.lua
-- ARGV[1] from    str   the first that may be
-- ARGV[2] to      str   the first that may not be
-- ARGV[3] limit   int   most rules
--
-- Returns
--   OK                rule ...    in the form of lib/topic/rule_member.lua
--   ENTITY_NOT_FOUND
-- Cost: O(log rules + limit)
local entity, rules = KEYS[1], KEYS[2]
local from, to, limit = ARGV[1], ARGV[2], ARGV[3]

if redis.call("EXISTS", entity) == 0 then
  return { "ENTITY_NOT_FOUND" }
end
return { "OK", unpack(redis.call("ZRANGE", rules, "[" .. from, "(" .. to, "BYLEX", "LIMIT", 0, limit)) }
