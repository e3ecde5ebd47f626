-- next_ready_session returns the session that has been ready longest and has a message that has not expired (SESS-12,
-- SESS-13), nil when there is none. It ends at most 100 expired messages; the second result reports whether it stopped
-- there.
--@include session/receivable
--@include expiry/expire_at
--@include base/text
local function next_ready_session(queue)
  local main, budget = queue.main, 100
  local can_expire = redis.call("EXISTS", main.expiry) == 1
  while budget > 0 and not queue.expiring do
    local session = redis.call("ZRANGE", queue.ready_sessions, 0, 0)[1]
    if not session or not can_expire then
      return session, false
    end
    local over = {}
    for _, member in ipairs(receivable(queue, session, budget)) do
      local position = text(tonumber(string.sub(member, -16)))
      local expires = tonumber(redis.call("ZSCORE", main.expiry, position) or "0")
      if expires == 0 or expires > queue.now then
        return session, false
      end
      over[#over + 1] = position
    end
    for _, position in ipairs(over) do
      expire_at(queue, main, position)
    end
    budget = budget - math.max(1, #over)
    if #receivable(queue, session, 1) == 0 then
      redis.call("ZREM", queue.ready_sessions, session) -- save_sessions would, but the next one is wanted now
    end
  end
  return nil, true
end
