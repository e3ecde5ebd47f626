-- return_message returns a message whose lock ended without settlement. counted reports whether the delivery failed
-- (DC-1) or counts as none (DC-2); it is invisible before visible_at (SETTLE-11). session is its session, on a side
-- with sessions; with skip_order a delay does not hold up the messages behind it.
--@include lock/decide_outcome
local function return_message(queue, side, position, counted, visible_at, session, skip_order)
  local count = counted and redis.call("HINCRBY", side.deliveries, position, 1) or nil
  decide_outcome(queue, side, position, count, visible_at, session, skip_order)
end
