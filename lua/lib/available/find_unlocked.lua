-- find_unlocked returns the position and log entry of the dead letter with a sequence number, nil when there is none or
-- it is locked.
--@include log/position_of
--@include log/entry_at
--@include available/is_fresh
--@include entity/drop_orphan
local function find_unlocked(queue, dead, number)
  local position = position_of(dead, number)
  local is_unlocked = position and (is_fresh(dead, position) or redis.call("ZSCORE", dead.ready, position)
    or redis.call("ZSCORE", dead.delayed, position)
    or tonumber(redis.call("ZSCORE", dead.deferred, position) or "0") > 0)
  if not is_unlocked then
    return nil
  end
  local entry = entry_at(dead, position)
  if not entry then
    drop_orphan(queue, dead, position)
  end
  return position, entry
end
