-- route_flags gives what a topic keeps of a subscription's options, because it is part of its routes: two digits, 1 or 0, for
-- RequiresSession and DeadLetteringOnFilterEvaluationExceptions.
local function route_flags(entity)
  return table.concat(redis.call("HMGET", entity, "requires_session", "dead_letter_failures"))
end
