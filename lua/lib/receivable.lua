-- receivable gives the members of by_session that a receive from a session could hand out next, at most limit: none behind a
-- delayed message that holds up those behind it (SETTLE-11).
--@include first_in_session
local function receivable(queue, session, limit)
  local members = first_in_session(queue, session, "a", limit)
  if queue.any_delayed == nil then
    queue.any_delayed = redis.call("EXISTS", queue.delayed) == 1
  end
  if #members == 0 or not queue.any_delayed then
    return members
  end
  local delayed = first_in_session(queue, session, "w", 1)[1]
  if delayed then
    local bound = string.sub(delayed, -16)
    while #members > 0 and string.sub(members[#members], -16) > bound do
      members[#members] = nil
    end
  end
  return members
end
