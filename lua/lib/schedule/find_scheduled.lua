-- find_scheduled finds scheduled messages by number, for a cancel (SCHED-5). One whose time has come is none any more,
-- except in a topic, where it is until it is activated (SCHED-7). Returns their members of due, and the numbers that
-- are not those of scheduled messages.
local function find_scheduled(queue, numbers)
  local members, missing = {}, {}
  for i, number in ipairs(numbers) do
    members[i] = string.format("%016d", number)
    local due = redis.call("ZSCORE", queue.due, members[i])
    if not due or (tonumber(due) <= queue.now and not queue.is_topic) then
      missing[#missing + 1] = number
    end
  end
  return members, missing
end
