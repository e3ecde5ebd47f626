-- can_send reports whether a status permits sends and cancels (STAT-1, STAT-2).
local function can_send(status)
  return status == "ACTIVE" or status == "RECEIVE_DISABLED"
end
