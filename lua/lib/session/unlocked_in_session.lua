-- unlocked_in_session returns the positions of a session's messages that are neither locked nor scheduled, up to a
-- position, in order: the lowest, at most limit.
--@include session/first_in_session
--@include base/text
local function unlocked_in_session(queue, session, bound, limit)
  local positions = {}
  for _, letter in ipairs({ "a", "d", "w", "x" }) do
    for _, member in ipairs(first_in_session(queue, session, letter, limit)) do
      local position = tonumber(string.sub(member, -16))
      if position <= bound then
        positions[#positions + 1] = text(position)
      end
    end
  end
  table.sort(positions, function(a, b) return tonumber(a) < tonumber(b) end)
  while #positions > limit do
    positions[#positions] = nil
  end
  return positions
end
