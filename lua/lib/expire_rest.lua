-- expire_rest ends, with SessionExpiryMode SESSION, all messages of a session that are neither locked nor scheduled, because the
-- time of one of them is over (TTL-23). It is one step however many they are. queue.freed has those that were just given back,
-- with their counts: their fate is not decided yet.
--@include unlocked_in_session
--@include take_unlocked
--@include entry_at
--@include expire_one
--@include end_entry
local function expire_rest(queue, side, session)
  if not side.by_session or not queue.expires_sessions then
    return
  end
  for _, position in ipairs(unlocked_in_session(queue, session)) do
    local other, count = entry_at(side.log, position), queue.freed and queue.freed[position]
    take_unlocked(queue, side, position, session)
    if count then
      end_entry(queue, side, other, count, true, count >= queue.max_delivery_count)
    else
      expire_one(queue, side, other)
    end
  end
end
