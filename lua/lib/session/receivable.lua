-- receivable returns the members of by_session that a receive can hand out next, at most limit: none behind a delayed
-- message that holds up the others (SETTLE-11).
--@include session/first_in_session
local function receivable(queue, session, limit)
  local members = first_in_session(queue, session, "a", limit)
  if queue.any_delayed == nil then
    queue.any_delayed = redis.call("EXISTS", queue.delayed) == 1
  end
  if #members == 0 or not queue.any_delayed then
    return members
  end
  local delayed, bound
  repeat
    if delayed then
      redis.call("ZREM", queue.by_session, delayed) -- it would hold up the session for ever
    end
    delayed = first_in_session(queue, session, "w", 1)[1]
    bound = delayed and tonumber(string.sub(delayed, -16))
  until not delayed or redis.call("ZSCORE", queue.delayed, string.format("%d", bound))
  while delayed and #members > 0 and tonumber(string.sub(members[#members], -16)) > bound do
    members[#members] = nil
  end
  return members
end
