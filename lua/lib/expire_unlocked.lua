-- expire_unlocked ends the message at a position whose time is over, wherever it waits.
--@include take_unlocked
--@include entry_at
--@include expire_entry
local function expire_unlocked(queue, side, position)
  take_unlocked(queue.entity, side, position)
  local entry = entry_at(side.log, position)
  if entry then
    expire_entry(queue, side, entry)
  else
    redis.call("ZREM", side.expiry, position)
  end
end
