-- find_by_number finds the unlocked messages with the given sequence numbers: deferred ones, or available ones. Expired
-- messages are ended first (TTL-8, TTL-18). Returns the positions, for each when it expires (0 = never), and the
-- numbers that were not found. With a session only its messages are found.
--@include log/position_of
--@include available/is_fresh
--@include log/entry_at
--@include entity/drop_orphan
--@include expiry/expire_at
--@include session/session_of
--@include expiry/is_expiring
local function find_by_number(queue, side, numbers, deferred, session)
  local positions, expiries, missing, over = {}, {}, {}, {}
  for _, number in ipairs(numbers) do
    local position = position_of(side, number)
    local is_deferred = position and tonumber(redis.call("ZSCORE", side.deferred, position) or "0") > 0
    local found = is_deferred
    if position and not deferred then
      found = redis.call("ZSCORE", side.ready, position) or redis.call("ZSCORE", side.delayed, position)
        or is_fresh(side, position)
    end
    local expires, entry = 0, nil
    if found and (is_deferred or side.by_session) then
      entry = entry_at(side, position)
      if not entry then
        drop_orphan(queue, side, position, session)
        found = nil
      end
    end
    if found and is_expiring(queue, side, position) then
      found = nil
    end
    if found and session and session_of(entry) ~= session then
      found = nil
    end
    if found then
      expires = tonumber(redis.call("ZSCORE", side.expiry, position) or "0")
      if is_deferred and side == queue.main then
        expires = tonumber(string.match(entry[2][1], "%d+$"))
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
    expire_at(queue, side, position)
  end
  return positions, expiries, missing
end
