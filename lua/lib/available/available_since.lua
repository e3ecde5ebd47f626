-- available_since returns since when what a queue hands out next has been there, in ms: since the oldest available
-- message was enqueued, or with sessions, since the session that has been ready longest became ready. "0" when there is
-- nothing to hand out.
--@include available/next_fresh
--@include log/entry_at
local function available_since(queue)
  if queue.has_sessions then
    return redis.call("ZRANGE", queue.ready_sessions, 0, 0, "WITHSCORES")[2] or "0"
  end
  local main = queue.main
  local position, returned = next_fresh(main, 1)[1], redis.call("ZRANGE", main.ready, 0, 0)[1]
  if returned and (not position or tonumber(returned) < tonumber(position)) then
    position = returned
  end
  local entry = position and entry_at(main, position)
  return entry and string.match(entry[2][1], "^%d+") or "0"
end
