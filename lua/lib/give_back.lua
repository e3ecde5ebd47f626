-- give_back ends the lock of a message that was not settled and decides its fate. The lock must be gone. counted says whether this
-- was a delivery that failed (DC-1) or none at all (DC-2); before visible_at the message is not received (SETTLE-11). session
-- is its session, on a side that has sessions; with skip_order a delay does not hold up the messages behind it there.
--@include decide_fate
local function give_back(queue, side, position, counted, visible_at, session, skip_order)
  local count = counted and redis.call("HINCRBY", side.deliveries, position, 1) or nil
  decide_fate(queue, side, position, count, visible_at, session, skip_order)
end
