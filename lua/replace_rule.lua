-- replace_rule: replace the filter and the action of a rule of a subscription (RULE-10). Copies that it made stay
-- (TOPIC-4).
-- Reads: topic, rules, entity.  Writes: topic, rules, entity.
--
-- KEYS[1] topic   hash  options and state of the topic
-- KEYS[2] rules   zset  rules of all its subscriptions, in the form of lib/topic/rule_member.lua
-- KEYS[3] entity  hash  options and state of the subscription
-- ARGV[1] now               int  0 = server time
-- ARGV[2] subscription      str  folded name
-- ARGV[3] rule              str  folded name
-- ARGV[4] letter            str  what it counts as: see lib/topic/rule_member.lua
-- ARGV[5] blob              str  the rule
-- ARGV[6] most_sql          int  most SQL filters of a topic
-- ARGV[7] most_correlation  int  most correlation filters of a topic
-- ARGV[8] version           int  of the routes from now on, a random number
--
-- Returns
--   OK                created_ms
--   RULE_NOT_FOUND
--   QUOTA_EXCEEDED    what limit: sql_filters or correlation_filters
--   ENTITY_NOT_FOUND
-- Cost: O(log rules)
--@include base/now_ms
--@include entity/touch
--@include topic/rule_member
--@include topic/find_rule
--@include topic/filters_over
--@include topic/count_filters
local topic, rules, entity = KEYS[1], KEYS[2], KEYS[3]
local now, subscription, rule, letter, blob = now_ms(ARGV[1]), ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local most_sql, most_correlation, version = tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8]

if redis.call("EXISTS", entity) == 0 then
  return { "ENTITY_NOT_FOUND" }
end
local member, old, created = find_rule(rules, subscription, rule)
if not member then
  return { "RULE_NOT_FOUND" }
end
local added = { s = 0, c = 0, o = 0 }
added[letter] = 1
added[old] = added[old] - 1
redis.call("HLEN", entity) -- as in lib/base/check_key_types
local over, limit = filters_over(topic, added, most_sql, most_correlation)
if over then
  return { "QUOTA_EXCEEDED", over, limit }
end
redis.call("ZREM", rules, member)
redis.call("ZADD", rules, 0, rule_member(subscription, rule, letter, created, blob))
count_filters(topic, entity, added)
redis.call("HSET", topic, "version", version)
touch(entity, now) -- IDLE-4
return { "OK", created }
