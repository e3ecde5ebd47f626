-- settle_locks ends the given locks that hold and calls finish for each of their messages, in order of position, so
-- that dead letters keep the order of their numbers (DLQ-16). changes are the new properties of each, or no list at
-- all; "!" = refused, and the lock stays (SETTLE-5). On a side with sessions token names their session. Returns for
-- each lock 1 = done, 0 = lost, 2 = still locked, 3 = session lost (SETTLE-2). A lock named twice ends once.
--@include lock/leave_runs
--@include lock/position_of_lock
--@include log/change_properties
--@include session/held_session
--@include session/session_lock_member
--@include session/touch_session
local function settle_locks(queue, side, wanted, changes, token, finish)
  local results, items, ended, over = {}, {}, {}, {}
  local kept, session = wanted, nil
  if side.by_session then
    session, kept = held_session(queue, token), {}
    for i, lock in ipairs(wanted) do
      results[i] = 3
      kept[i] = session and session_lock_member(session, string.match(lock, "^(%d+)(:.*)$"))
    end
    if not session then
      return results
    end
    touch_session(queue, session) -- one more may be in flight
  else
    leave_runs(queue.entity, side, wanted)
  end
  for i, ends in ipairs(redis.call("ZMSCORE", side.locks, unpack(kept))) do
    local lock, change = kept[i], changes[i] or ""
    results[i] = 0
    if ends and (session or tonumber(ends) > queue.now) and not over[lock] then
      results[i] = change == "!" and 2 or 1
      if results[i] == 1 then
        items[#items + 1] = { position = position_of_lock(wanted[i]), change = change }
        ended[#ended + 1], over[lock] = lock, true
      end
    end
  end
  if #ended > 0 then
    redis.call("ZREM", side.locks, unpack(ended))
  end
  table.sort(items, function(a, b) return tonumber(a.position) < tonumber(b.position) end)
  for _, item in ipairs(items) do
    change_properties(queue, side, item.position, item.change)
    finish(item.position, session)
  end
  return results
end
