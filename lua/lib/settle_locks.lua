-- settle_locks ends the given locks that hold and lets finish decide about each of their messages, in order of position, so
-- that dead letters keep the order of their numbers (DLQ-16). changes are what becomes different about each message, in
-- the same order, or none at all; "!" says that it cannot be, so the lock stays (SETTLE-5). A lock named twice ends once. On a
-- side with sessions token names the one they are in. Returns a list of 1 done, 0 lost, 2 still locked and 3 session's lock
-- lost (SETTLE-2).
--@include lock_position
--@include modify
--@include held_session
--@include session_lock
--@include touch_session
local function settle_locks(queue, side, wanted, changes, token, finish)
  local results, items, ended, over = {}, {}, {}, {}
  local kept, session = wanted, nil
  if side.by_session then
    session, kept = held_session(queue, token), {}
    for i, lock in ipairs(wanted) do
      results[i] = 3
      kept[i] = session and session_lock(session, lock)
    end
    if not session then
      return results
    end
    touch_session(queue, session) -- there is room for one more in flight
  end
  for i, ends in ipairs(redis.call("ZMSCORE", side.locks, unpack(kept))) do
    local lock, change = kept[i], changes[i] or ""
    results[i] = 0
    if ends and (session or tonumber(ends) > queue.now) and not over[lock] then
      results[i] = change == "!" and 2 or 1
      if results[i] == 1 then
        items[#items + 1] = { position = lock_position(wanted[i]), change = change }
        ended[#ended + 1], over[lock] = lock, true
      end
    end
  end
  if #ended > 0 then
    redis.call("ZREM", side.locks, unpack(ended))
  end
  table.sort(items, function(a, b) return tonumber(a.position) < tonumber(b.position) end)
  for _, item in ipairs(items) do
    modify(queue, side, item.position, item.change)
    finish(item.position, session)
  end
  return results
end
