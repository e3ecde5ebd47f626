-- expire_at ends the expired message at a position, wherever it waits.
--@include available/take_unlocked
--@include session/session_of
--@include log/entry_at
--@include expiry/expire_with_session
--@include entity/note_orphan
local function expire_at(queue, side, position)
  local entry = entry_at(side, position)
  if entry then
    take_unlocked(queue, side, position, session_of(entry))
    expire_with_session(queue, side, entry)
  elseif redis.call("ZREM", side.expiry, position) == 1 then -- else it went with others of its session
    note_orphan(queue, position)
  end
end
