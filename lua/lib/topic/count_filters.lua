-- count_filters counts filters that come, or with negative numbers go, for their subscription and for the topic
-- (RULE-4).
local function count_filters(topic, entity, added)
  for _, pair in ipairs({ { "sql_filters", added.s }, { "correlation_filters", added.c } }) do
    local field, count = pair[1], pair[2]
    if count ~= 0 then
      redis.call("HINCRBY", topic, field, count)
      redis.call("HINCRBY", entity, field, count)
    end
  end
end
