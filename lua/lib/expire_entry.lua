-- expire_entry ends a message whose time is over, as expire_one does, and what goes with it (TTL-23).
--@include expire_one
--@include expire_rest
--@include session_of
local function expire_entry(queue, side, entry)
  expire_one(queue, side, entry)
  expire_rest(queue, side, session_of(entry))
end
