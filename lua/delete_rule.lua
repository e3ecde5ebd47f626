-- delete_rule: remove a rule from a subscription (RULE-2, RULE-3). Copies that it made stay (TOPIC-4).
-- Reads: rules, entity.  Writes: topic, rules, entity.
-- Flags: allow-oom
--
-- KEYS[1] topic   hash  options and state of the topic
-- KEYS[2] rules   zset  rules of all its subscriptions, in the form of lib/topic/rule_member.lua
-- KEYS[3] entity  hash  options and state of the subscription
-- ARGV[1] now           int  0 = server time
-- ARGV[2] subscription  str  folded name
-- ARGV[3] rule          str  folded name
-- ARGV[4] version       int  of the routes from now on, a random number
--
-- Returns
--   OK
--   RULE_NOT_FOUND
--   ENTITY_NOT_FOUND
-- Cost: O(log rules)
--@include base/now_ms
--@include entity/touch
--@include topic/find_rule
--@include topic/count_filters
local topic, rules, entity = KEYS[1], KEYS[2], KEYS[3]
local now, subscription, rule, version = now_ms(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]

if redis.call("EXISTS", entity) == 0 then
  return { "ENTITY_NOT_FOUND" }
end
local member, letter = find_rule(rules, subscription, rule)
if not member then
  return { "RULE_NOT_FOUND" }
end
redis.call("HLEN", entity) -- as in lib/base/check_key_types
redis.call("HLEN", topic)
redis.call("ZREM", rules, member)
local removed = { s = 0, c = 0, o = 0 }
removed[letter] = -1
count_filters(topic, entity, removed)
redis.call("HSET", topic, "version", version)
touch(entity, now) -- IDLE-4
return { "OK" }
