-- find_numbers finds the messages with the given sequence numbers that are deferred, or available, and not locked. Returns their
-- positions, for each the instant at which it expires (0 = never), and the numbers that cannot be had. What is past
-- its time is expired and cannot be had (TTL-8, TTL-18). With a session only its messages are found.
--@include position_of
--@include is_fresh
--@include entry_at
--@include expire_unlocked
--@include session_of
local function find_numbers(queue, side, numbers, deferred, session)
  local positions, expiries, missing, over = {}, {}, {}, {}
  for _, number in ipairs(numbers) do
    local position = position_of(side, number)
    local is_deferred = position and tonumber(redis.call("ZSCORE", side.deferred, position) or "0") > 0
    local found = is_deferred
    if position and not deferred then
      found = redis.call("ZSCORE", side.ready, position) or redis.call("ZSCORE", side.delayed, position)
        or is_fresh(side, position)
    end
    local expires = 0
    if found and session and session_of(entry_at(side.log, position)) ~= session then
      found = nil
    end
    if found then
      expires = tonumber(redis.call("ZSCORE", side.expiry, position) or "0")
      if is_deferred and side == queue.main then
        expires = tonumber(string.match(entry_at(side.log, position)[2][1], "%d+$"))
      end
    end
    if found and expires > 0 and expires <= queue.now then
      over[#over + 1] = position
      found = nil
    end
    if found then
      positions[#positions + 1], expiries[#expiries + 1] = position, expires
    else
      missing[#missing + 1] = number
    end
  end
  table.sort(over, function(a, b) return tonumber(a) < tonumber(b) end)
  for _, position in ipairs(over) do
    expire_unlocked(queue, side, position)
  end
  return positions, expiries, missing
end
