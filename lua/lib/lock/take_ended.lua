-- take_ended returns locks of a side without sessions that have ended, as members and scores in turn, at most slice.
-- Messages of runs that have ended get locks of their own first, about as many as that.
--@include lock/leave_runs
--@include lock/locks_of_run
local function take_ended(queue, side, slice)
  local nonces = side.runs and redis.call("ZRANGEBYSCORE", side.run_locks, "-inf", queue.now, "LIMIT", 0, slice) or {}
  local leaving = {}
  for _, nonce in ipairs(nonces) do
    local run = #leaving < slice and redis.call("HGET", side.runs, nonce)
    for _, lock in ipairs(run and locks_of_run(nonce, run) or {}) do
      leaving[#leaving + 1] = lock
    end
    if not run and #leaving < slice then -- another client changed keys
      redis.call("ZREM", side.run_locks, nonce)
    end
  end
  leave_runs(queue.entity, side, leaving)
  return redis.call("ZRANGEBYSCORE", side.locks, "-inf", queue.now, "WITHSCORES", "LIMIT", 0, slice)
end
