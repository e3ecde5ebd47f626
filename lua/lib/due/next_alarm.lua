-- next_alarm returns the first instant at which something on a queue becomes due, 0 for none. lazy leaves out lifetimes
-- (TTL-20).
--@include duplicate/history_ends
--@include entity/unused_at
local function next_alarm(queue, lazy)
  local first = 0
  local function consider(at)
    if at and (first == 0 or at < first) then
      first = at
    end
  end
  consider(tonumber(redis.call("ZRANGE", queue.due, 0, 0, "WITHSCORES")[2]))
  for _, side in ipairs({ queue.main, queue.dead }) do
    if not side.by_session then -- there locks end with their session's
      local ends = tonumber(redis.call("ZRANGE", side.locks, 0, 0, "WITHSCORES")[2])
      consider(ends and ends < 253402300799000 and ends) -- else it is one of those of set_aside
    end
    consider(side.runs and tonumber(redis.call("ZRANGE", side.run_locks, 0, 0, "WITHSCORES")[2]))
    consider(tonumber(redis.call("ZRANGE", side.delayed, 0, 0, "WITHSCORES")[2]))
    consider(not lazy and tonumber(redis.call("ZRANGEBYSCORE", side.expiry, "(0", "+inf", "WITHSCORES", "LIMIT", 0,
      1)[2]))
  end
  if queue.has_sessions then
    consider(queue.expiring and queue.now)
    consider(tonumber(redis.call("ZRANGE", queue.session_locks, 0, 0, "WITHSCORES")[2]))
    consider(tonumber(redis.call("ZRANGE", queue.states_due, 0, 0, "WITHSCORES")[2]))
  end
  local oldest = tonumber(redis.call("ZRANGE", queue.history_times, 0, 0, "WITHSCORES")[2])
  consider(oldest and history_ends(queue, oldest))
  consider(unused_at(queue.entity, queue.due, { queue.main.locks, queue.main.run_locks,
    queue.dead.locks, queue.session_locks },
    queue.dead.log, queue.now))
  return first
end
