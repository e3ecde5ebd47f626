-- is_in_run reports whether a lock "<position>:<nonce>" is that of a message in a run, and holds.
local function is_in_run(side, lock, now)
  if not side.runs or side.run_messages == 0 then
    return false
  end
  local position, nonce = string.match(lock, "^(%d+):(%d+)$")
  local ends = redis.call("ZSCORE", side.run_locks, nonce)
  if not ends or tonumber(ends) <= now then
    return false
  end
  for first, last in string.gmatch(redis.call("HGET", side.runs, nonce) or "", "(%d+)%-(%d+)") do
    if tonumber(first) <= tonumber(position) and tonumber(position) <= tonumber(last) then
      return true
    end
  end
  return false
end
