-- find_rule returns a rule of a subscription in the form of rule_member, its letter and when it was created, nil for
-- none.
local function find_rule(rules, subscription, rule)
  local from = subscription .. "\0" .. rule
  local member = redis.call("ZRANGE", rules, "[" .. from .. "\0", "(" .. from .. "\1", "BYLEX", "LIMIT", 0, 1)[1]
  if not member then
    return nil
  end
  return member, string.match(member, "^(.)(%d+):", #from + 2)
end
