-- take_ended returns locks of a side without sessions that have ended, as members and scores in turn, at most slice.
-- Messages of runs get locks of their own first, about as many as that.
--@include lock/leave_runs
--@include lock/locks_of_run
local function take_ended(queue, side, slice)
  local function read()
    return redis.call("ZRANGEBYSCORE", side.locks, "-inf", queue.now, "WITHSCORES", "LIMIT", 0, slice)
  end
  local ended = read()
  local leaving, is_run = {}, false
  for i = 1, #ended, 2 do
    local nonce = string.match(ended[i], "^:(%d+)$")
    is_run = is_run or nonce
    local run = nonce and #leaving < slice and redis.call("HGET", side.runs, nonce)
    for _, lock in ipairs(run and locks_of_run(nonce, run) or {}) do
      leaving[#leaving + 1] = lock
    end
  end
  if not is_run then
    return ended
  end
  leave_runs(queue.entity, side, leaving)
  local alone = {}
  ended = read()
  for i = 1, #ended, 2 do
    if string.byte(ended[i]) ~= 58 then -- else a run, which waits for the next slice
      alone[#alone + 1], alone[#alone + 2] = ended[i], ended[i + 1]
    end
  end
  return alone
end
