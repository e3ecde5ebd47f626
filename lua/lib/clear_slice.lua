-- clear_slice does what time has made due on a queue, in a bounded slice: locks that ended are taken back (LOCK-6) and
-- unlocked messages past their time are expired (TTL-11). Every script that looks at a queue does it first, so nothing
-- depends on a sweeper. Returns how many messages became available, and whether more is due.
--@include give_back
--@include expire_entry
--@include lock_position
--@include entry_at
--@include close_gaps
local function clear_slice(queue, now)
  local slice = 100
  local returned = 0
  local ended = redis.call("ZRANGEBYSCORE", queue.locks, "-inf", now, "LIMIT", 0, slice)
  if #ended > 0 then
    redis.call("ZREM", queue.locks, unpack(ended))
    local positions = {}
    for i, lock in ipairs(ended) do
      positions[i] = lock_position(lock)
    end
    table.sort(positions, function(a, b) return tonumber(a) < tonumber(b) end)
    for _, position in ipairs(positions) do
      if give_back(queue, position, true, now) then
        returned = returned + 1
      end
    end
  end
  local more = #ended == slice
  if queue.dead then
    return returned, more
  end

  local due = redis.call("ZRANGEBYSCORE", queue.expiry, "-inf", now, "LIMIT", 0, slice)
  if #due > 0 then
    redis.call("ZREM", queue.expiry, unpack(due))
    redis.call("ZREM", queue.ready, unpack(due))
    table.sort(due, function(a, b) return tonumber(a) < tonumber(b) end)
    for _, position in ipairs(due) do
      local entry = entry_at(queue.log, position)
      if entry then
        expire_entry(queue, entry, now)
      end
    end
    close_gaps(queue)
  end
  return returned, more or #due == slice
end
