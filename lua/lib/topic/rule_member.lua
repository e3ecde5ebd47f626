-- rule_member returns the form in which a rule is kept: "<subscription>\0<rule>\0<letter><created, ms>:<blob>", both
-- names folded. The letter is what it counts as (RULE-4): s = SQL filter, c = correlation filter, o = other. Scripts do
-- not read the blob.
local function rule_member(subscription, rule, letter, created, blob)
  return subscription .. "\0" .. rule .. "\0" .. letter .. created .. ":" .. blob
end
