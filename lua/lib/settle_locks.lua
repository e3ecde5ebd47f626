-- settle_locks ends the given locks that hold and lets finish decide about each of their messages, in order of position, so
-- that dead letters keep the order of their numbers (DLQ-16). changes are what becomes different about each message, in
-- the same order, or none at all; "!" says that it cannot be, so the lock stays (SETTLE-5). A lock named twice ends once.
-- Returns a list of 1 done, 0 lost and 2 still locked.
--@include lock_position
--@include modify
local function settle_locks(queue, side, wanted, changes, finish)
  local results, items, ended, over = {}, {}, {}, {}
  for i, ends in ipairs(redis.call("ZMSCORE", side.locks, unpack(wanted))) do
    local lock, change = wanted[i], changes[i] or ""
    results[i] = 0
    if ends and tonumber(ends) > queue.now and not over[lock] then
      results[i] = change == "!" and 2 or 1
      if results[i] == 1 then
        items[#items + 1] = { position = lock_position(lock), change = change }
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
    finish(item.position)
  end
  return results
end
