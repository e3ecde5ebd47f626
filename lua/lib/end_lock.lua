-- end_lock carries out the end of a lock: of a message { lock, position, session }, which free_together may have freed.
--@include give_back
--@include decide_fate
--@include session_member
local function end_lock(queue, side, item, counted, visible_at)
  if not item.freed then
    redis.call("ZREM", side.locks, item.lock)
    give_back(queue, side, item.position, counted, visible_at, item.session)
  elseif redis.call("ZREM", queue.by_session, session_member(item.session, item.freed, item.position)) == 1 then
    queue.freed[item.position] = nil
    decide_fate(queue, side, item.position, item.count, visible_at, item.session) -- no other message has taken it along
  end
end
