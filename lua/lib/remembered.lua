-- remembered gives the sequence number of the message whose key the duplicate history holds, nil when it is new: also at the
-- very instant at which the window ends (DUP-4).
local function remembered(target, key)
  local accepted, number = string.match(redis.call("HGET", target.history, key) or "", "^(%d+):(%d+)$")
  if accepted and tonumber(accepted) + target.duplicate_window_ms > target.now then
    return tonumber(number)
  end
  return nil
end
