-- settle_unsettled ends the given locks and gives their messages back, in order of position. counted as in give_back.
-- Returns the reply: OK, then 1 or 0 per lock.
--@include live_locks
--@include lock_position
--@include give_back
--@include touch
--@include wake_next
local function settle_unsettled(queue, wanted, counted, now)
  touch(queue.entity, now)
  local live, held = live_locks(queue.locks, wanted, now)
  local results, positions = { "OK" }, {}
  for i = 1, #wanted do
    results[i + 1] = live[i] and 1 or 0
  end
  if #held == 0 then
    return results
  end
  for i, lock in ipairs(held) do
    positions[i] = lock_position(lock)
  end
  redis.call("ZREM", queue.locks, unpack(held))
  table.sort(positions, function(a, b) return tonumber(a) < tonumber(b) end)
  local returned = 0
  for _, position in ipairs(positions) do
    if give_back(queue, position, counted, now) then
      returned = returned + 1
    end
  end
  if returned > 0 then
    wake_next(queue.waiting, returned)
  end
  if queue.moved > 0 then
    wake_next(queue.dead_waiting, queue.moved)
  end
  return results
end
