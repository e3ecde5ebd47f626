-- group_by_nonce returns the nonces of locks, "<position>:<nonce>", each once, and by nonce their positions in the form
-- of a run.
local function group_by_nonce(locks)
  local nonces, positions = {}, {}
  for _, lock in ipairs(locks) do
    local position, nonce = string.match(lock, "^(%d+):(%d+)$")
    if nonce then
      if not positions[nonce] then
        nonces[#nonces + 1], positions[nonce] = nonce, {}
      end
      table.insert(positions[nonce], tonumber(position))
    end
  end
  for nonce, list in pairs(positions) do
    table.sort(list, function(a, b) return tonumber(a) < tonumber(b) end)
    local parts = {}
    for i, position in ipairs(list) do
      parts[i] = string.format("%d-%d", position, position)
    end
    positions[nonce] = table.concat(parts, ",")
  end
  return nonces, positions
end
