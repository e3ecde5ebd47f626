-- expire_entry ends a message whose time is over and that nobody holds: to the dead-letter queue or away (TTL-11, TTL-15,
-- TTL-19). It must be off every index but deliveries, expiry and modified. With SessionExpiryMode SESSION all messages of its
-- session that are neither locked nor scheduled go with it, in this one step however many they are (TTL-23).
--@include bury_entry
--@include remove_entry
--@include session_of
--@include unlocked_in_session
--@include take_unlocked
--@include entry_at
local function expire_one(queue, side, entry)
  if side == queue.main and queue.dead_letter_expired then
    local count = redis.call("HGET", side.deliveries, string.match(entry[1], "^%d+")) or "0"
    bury_entry(queue, entry, count, "t", "TTLExpiredException", "the message passed its time to live before it was settled")
  else
    remove_entry(queue, side, entry)
  end
end

local function expire_entry(queue, side, entry)
  expire_one(queue, side, entry)
  if not side.by_session or not queue.expires_sessions then
    return
  end
  local session = session_of(entry)
  for _, position in ipairs(unlocked_in_session(queue, session)) do
    local other = entry_at(side.log, position)
    take_unlocked(queue, side, position, session)
    expire_one(queue, side, other)
  end
end
