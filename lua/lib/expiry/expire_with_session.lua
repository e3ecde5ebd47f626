-- expire_with_session ends an expired message as expire_message does, and what goes with it (TTL-23).
--@include expiry/expire_message
--@include expiry/expire_session
--@include session/session_of
local function expire_with_session(queue, side, entry)
  expire_message(queue, side, entry)
  expire_session(queue, side, session_of(entry))
end
