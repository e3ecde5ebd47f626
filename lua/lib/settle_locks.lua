-- settle_locks ends the given locks that hold and lets finish decide about each of their messages, in order of position, so
-- that dead letters keep the order of their numbers (DLQ-16). changes are what becomes different about each message, in
-- the same order, or none at all; "!" says that it cannot be, so the lock stays (SETTLE-5). Returns a list of 1 done, 0 lost
-- and 2 still locked.
--@include live_locks
--@include lock_position
--@include modify
local function settle_locks(queue, side, wanted, changes, finish)
  local live = live_locks(side.locks, wanted, queue.now)
  local results, items, ended = {}, {}, {}
  for i, lock in ipairs(wanted) do
    local change = changes[i] or ""
    results[i] = live[i] and (change == "!" and 2 or 1) or 0
    if results[i] == 1 then
      items[#items + 1] = { position = lock_position(lock), change = change }
      ended[#ended + 1] = lock
    end
  end
  if #ended > 0 then
    redis.call("ZREM", side.locks, unpack(ended))
  end
  table.sort(items, function(a, b) return tonumber(a.position) < tonumber(b.position) end)
  for _, item in ipairs(items) do
    modify(queue, side, item.position, item.change)
    finish(item.position)
  end
  return results
end
