-- expire_slice ends messages of a session up to a number that are neither locked nor scheduled, lowest first, at most
-- 250 and 4 MiB in one script, besides the undecided ones, which were just unlocked. kind is as in mark_expiring. If
-- others are left it returns true, and they stay marked: none is handed out until the next scripts have ended them.
--@include session/unlocked_in_session
--@include available/take_unlocked
--@include log/entry_at
--@include entity/drop_orphan
--@include expiry/expire_message
--@include lock/end_message
--@include dead_letter/dead_letter_entry
--@include expiry/mark_expiring
local function expire_slice(queue, side, session, kind, bound)
  queue.rest_left, queue.rest_bytes = queue.rest_left or 250, queue.rest_bytes or 4194304
  local most = math.max(0, queue.rest_left) + (queue.undecided and queue.undecided_count or 0)
  for i, position in ipairs(unlocked_in_session(queue, session, bound, most + 1)) do
    local other, count = entry_at(side, position), queue.undecided and queue.undecided[position]
    if i > most or (queue.rest_bytes <= 0 and not count) then
      mark_expiring(queue, session, kind, bound)
      return true
    end
    if other then
      take_unlocked(queue, side, position, session)
      if kind == "d" then
        count = count or redis.call("HGET", side.deliveries, position) or "0"
        dead_letter_entry(queue, other, count, "r", "SessionDeadLettered", "the rest of its session was dead-lettered")
      elseif count then
        end_message(queue, side, other, count, true, count >= queue.max_delivery_count)
      else
        expire_message(queue, side, other)
      end
      queue.rest_bytes = queue.rest_bytes - string.match(other[1], "%d+$")
    else
      drop_orphan(queue, side, position, session)
    end
    queue.rest_left = queue.rest_left - 1
  end
  mark_expiring(queue, session, kind, nil)
  return false
end
