-- can_receive reports whether a status permits receiving (STAT-1, STAT-2).
local function can_receive(status)
  return status == "ACTIVE" or status == "SEND_DISABLED"
end
