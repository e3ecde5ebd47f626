-- route_flags returns what the routes of a topic have of a subscription's options: two digits, 1 or 0, for
-- RequiresSession and DeadLetteringOnFilterEvaluationExceptions.
local function route_flags(entity)
  return table.concat(redis.call("HMGET", entity, "requires_session", "dead_letter_failures"))
end
