-- last_use returns the last instant at which an entity was in use (IDLE-2 to IDLE-6): now, while it has scheduled
-- messages, while a message or session of it is locked, and while it forwards (ENT-14). locks are the sets of its locks
-- by their ends; a lock counts up to its end.
local function last_use(entity, due, locks, now)
  local values = redis.call("HMGET", entity, "accessed_ms", "forward_to")
  if (values[2] or "") ~= "" or redis.call("EXISTS", due) == 1 then
    return now
  end
  local last = tonumber(values[1])
  for _, key in ipairs(locks) do
    local ends = tonumber(redis.call("ZRANGE", key, 0, 0, "REV", "WITHSCORES")[2])
    if ends and ends > last then
      last = math.min(ends, now)
    end
  end
  return last
end
