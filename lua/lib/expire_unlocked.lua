-- expire_unlocked ends the message at a position whose time is over, wherever it waits.
--@include take_unlocked
--@include session_of
--@include entry_at
--@include expire_entry
local function expire_unlocked(queue, side, position)
  local entry = entry_at(side.log, position)
  if entry then
    take_unlocked(queue, side, position, session_of(entry))
    expire_entry(queue, side, entry)
  else
    redis.call("ZREM", side.expiry, position)
  end
end
