-- filters_over returns of which kind a topic would have too many filters if some were added, and how many it may have;
-- nil when it would not.
local function filters_over(topic, added, most_sql, most_correlation)
  local present = redis.call("HMGET", topic, "sql_filters", "correlation_filters")
  if added.s > 0 and (present[1] or 0) + added.s > most_sql then
    return "sql_filters", most_sql
  end
  if added.c > 0 and (present[2] or 0) + added.c > most_correlation then
    return "correlation_filters", most_correlation
  end
  return nil
end
