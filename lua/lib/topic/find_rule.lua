-- find_rule returns a rule of a subscription in the form of rule_member, nil for none.
local function find_rule(rules, subscription, rule)
  local from = subscription .. "\0" .. rule
  return redis.call("ZRANGE", rules, "[" .. from .. "\0", "(" .. from .. "\1", "BYLEX", "LIMIT", 0, 1)[1]
end
