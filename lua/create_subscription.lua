-- create_subscription: create a subscription with its first rules unless its name is taken (ENT-2, ENT-6, RULE-1).
-- Reads: topic, subscriptions, entity.  Writes: topic, subscriptions, rules, entity.
--
-- KEYS[1] topic          hash  options and state of the topic
-- KEYS[2] subscriptions  hash  folded name -> lib/topic/route_flags.lua
-- KEYS[3] rules          zset  rules of all its subscriptions, in the form of lib/topic/rule_member.lua
-- KEYS[4] entity         hash  options and state of the subscription
-- ARGV[1] now              int  0 = server time
-- ARGV[2] name             str  folded name
-- ARGV[3] most             int  most subscriptions of a topic (RULE-4)
-- ARGV[4] most_sql         int  most SQL filters of a topic
-- ARGV[5] most_correlation int  most correlation filters of a topic
-- ARGV[6] version          int  of the routes from now on, a random number
-- ARGV[7] values           int  number of the fields and values that follow
-- ARGV[8..] field value ... folded_name letter blob ...  name and options, then per rule what lib/topic/rule_member.lua
--         is made of
--
-- Returns
--   OK                     field value ...
--   ENTITY_ALREADY_EXISTS  field value ...
--   ENTITY_NOT_FOUND       the topic does not exist
--   QUOTA_EXCEEDED         what limit: subscriptions, sql_filters or correlation_filters
-- Cost: O(rules log N)
--@include base/now_ms
--@include base/text
--@include base/slice
--@include entity/write_entity
--@include topic/route_flags
--@include topic/rule_member
--@include topic/filters_over
--@include topic/count_filters
local topic, subscriptions, rules, entity = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local now, name, most = text(now_ms(ARGV[1])), ARGV[2], tonumber(ARGV[3])
local most_sql, most_correlation, version, values = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6], tonumber(ARGV[7])
local fields, first = slice(ARGV, 8, 7 + values), slice(ARGV, 8 + values)

if redis.call("HGET", topic, "kind") ~= "topic" then
  return { "ENTITY_NOT_FOUND" }
end
if redis.call("EXISTS", entity) == 1 then
  return { "ENTITY_ALREADY_EXISTS", redis.call("HGETALL", entity) }
end
if redis.call("HLEN", subscriptions) - redis.call("HEXISTS", subscriptions, "$unmatched") >= most then
  return { "QUOTA_EXCEEDED", "subscriptions", most }
end
local added = { s = 0, c = 0, o = 0 }
for i = 1, #first, 3 do
  added[first[i + 1]] = added[first[i + 1]] + 1
end
redis.call("ZCARD", rules) -- as in lib/base/check_key_types
local over, limit = filters_over(topic, added, most_sql, most_correlation)
if over then
  return { "QUOTA_EXCEEDED", over, limit }
end
write_entity(entity, "subscription", now, fields)
redis.call("HSET", subscriptions, name, route_flags(entity))
for i = 1, #first, 3 do
  redis.call("ZADD", rules, 0, rule_member(name, first[i], first[i + 1], now, first[i + 2]))
end
count_filters(topic, entity, added)
redis.call("HSET", topic, "version", version, "accessed_ms", now)
return { "OK", redis.call("HGETALL", entity) }
