-- expire_in_session ends messages of a session that have expired, and what goes with them (TTL-8, TTL-23).
--@include expiry/expire_with_session
--@include log/entry_at
--@include session/touch_session
local function expire_in_session(queue, session, positions)
  touch_session(queue, session)
  for _, position in ipairs(positions) do
    local entry = entry_at(queue.main, position)
    if entry then
      expire_with_session(queue, queue.main, entry)
    end
  end
end
