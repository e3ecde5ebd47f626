-- unlocked_in_session gives the positions of all messages of a session that are neither locked nor scheduled, in order.
--@include first_in_session
--@include text
local function unlocked_in_session(queue, session)
  local positions = {}
  for _, letter in ipairs({ "a", "d", "w", "x" }) do
    for _, member in ipairs(first_in_session(queue, session, letter, -1)) do
      positions[#positions + 1] = text(tonumber(string.sub(member, -16)))
    end
  end
  table.sort(positions, function(a, b) return tonumber(a) < tonumber(b) end)
  return positions
end
