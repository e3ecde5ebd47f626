-- can_receive says whether a status permits receives and peeks (STAT-1, STAT-2).
local function can_receive(status)
  return status == "ACTIVE" or status == "SEND_DISABLED"
end
