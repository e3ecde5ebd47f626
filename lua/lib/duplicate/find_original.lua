-- find_original returns the number of the message whose key the history has, nil for a new one, also at the instant at
-- which the window ends (DUP-4). entry is what the history has, read unless given.
local function find_original(target, key, entry)
  if entry == nil then
    entry = redis.call("HGET", target.history, key)
  end
  local accepted, number = string.match(entry or "", "^(%d+):(%d+)$")
  if accepted and tonumber(accepted) + target.duplicate_window_ms > target.now then
    return tonumber(number)
  end
  return nil
end
