-- lost_lock returns the place, from 0, of the first of the given locks that does not hold (LOCK-7), or that was given
-- before in this script (SETTLE-14); nil when all can be ended. It changes nothing. session is that of the messages, on
-- a side with sessions, whose lock holds.
--@include lock/is_in_run
--@include session/session_lock_member
local function lost_lock(queue, side, wanted, session)
  local kept = wanted
  if session then
    kept = {}
    for i, lock in ipairs(wanted) do
      kept[i] = session_lock_member(session, string.match(lock, "^(%d+)(:.*)$"))
    end
  end
  side.ending = side.ending or {}
  for i, ends in ipairs(redis.call("ZMSCORE", side.locks, unpack(kept))) do
    local holds = ends and (session ~= nil or tonumber(ends) > queue.now)
    if side.ending[kept[i]] or not (holds or is_in_run(side, wanted[i], queue.now)) then
      return i - 1
    end
    side.ending[kept[i]] = true
  end
  return nil
end
