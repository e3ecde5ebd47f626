-- count_filters counts filters that come, or with negative numbers go, by letter (rule_member): for their subscription and for
-- the topic (RULE-4).
local function count_filters(topic, entity, added)
  for field, count in pairs({ sql_filters = added.s, correlation_filters = added.c }) do
    if count ~= 0 then
      redis.call("HINCRBY", topic, field, count)
      redis.call("HINCRBY", entity, field, count)
    end
  end
end
