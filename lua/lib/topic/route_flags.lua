-- route_flags returns what the routes of a topic have of a subscription: two digits, 1 or 0, for RequiresSession and
-- DeadLetteringOnFilterEvaluationExceptions. In a topic that belongs to one with partitions ":" and its incarnation
-- follow.
local function route_flags(entity)
  local values = redis.call("HMGET", entity, "requires_session", "dead_letter_failures", "in_partition", "incarnation")
  return values[1] .. values[2] .. (values[3] and ":" .. values[4] or "")
end
