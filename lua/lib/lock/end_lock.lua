-- end_lock ends the lock of an item, which unlock_together may have unlocked already.
--@include lock/return_message
--@include lock/decide_outcome
--@include session/session_member
local function end_lock(queue, side, item, counted, visible_at)
  if not item.state then
    redis.call("ZREM", side.locks, item.lock)
    return_message(queue, side, item.position, counted, visible_at, item.session)
  elseif redis.call("ZREM", queue.by_session, session_member(item.session, item.state, item.position)) == 1 then
    queue.undecided[item.position] = nil
    decide_outcome(queue, side, item.position, item.count, visible_at, item.session) -- it did not expire with another
  end
end
