-- is_expiring reports whether the message at a position is to be ended with others of its session and cannot be
-- received any more (expire_slice).
--@include log/entry_at
--@include session/session_of
local function is_expiring(queue, side, position)
  if not side.by_session or not queue.expiring then
    return false
  end
  local entry = entry_at(side, position)
  local session = entry and session_of(entry)
  for number, _, name in string.gmatch(queue.expiring, "(%d+)(d?):([^%z]*)%z") do
    if name == session and tonumber(position) <= tonumber(number) then
      return true
    end
  end
  return false
end
