-- positions_set_aside returns the positions of the messages that the transfer under way has set aside on a side, in
-- order.
--@include transfer/locks_set_aside
--@include lock/position_of_lock
local function positions_set_aside(side)
  local positions = {}
  for i, lock in ipairs(locks_set_aside(side)) do
    positions[i] = position_of_lock(lock)
  end
  table.sort(positions, function(a, b) return tonumber(a) < tonumber(b) end)
  return positions
end
