-- settle_unsettled ends the given locks and gives their messages back, in order of position. counted as in give_back.
-- Returns the reply: OK, then 1 or 0 per lock.
--@include live_locks
--@include lock_parts
--@include give_back
--@include touch
--@include wake_next
local function settle_unsettled(queue, wanted, counted, now)
  local results, held, positions = { "OK" }, {}, {}
  for i, live in ipairs(live_locks(queue.locks, wanted, now)) do
    results[i + 1] = live and 1 or 0
    if live then
      held[#held + 1] = wanted[i]
      positions[#positions + 1] = lock_parts(wanted[i])
    end
  end
  if #held == 0 then
    return results
  end
  redis.call("ZREM", queue.locks, unpack(held))
  table.sort(positions, function(a, b) return tonumber(a) < tonumber(b) end)
  local returned = 0
  for _, position in ipairs(positions) do
    if give_back(queue, position, counted, now) then
      returned = returned + 1
    end
  end
  touch(queue.entity, queue.accessed_ms, now)
  if returned > 0 then
    wake_next(queue.waiting, returned)
  end
  if queue.moved > 0 then
    wake_next(queue.dead_waiting, queue.moved)
  end
  return results
end
