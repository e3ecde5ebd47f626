-- expiring_up_to returns up to which number messages of a session are still to be ended (mark_expiring), nil when none
-- is.
local function expiring_up_to(queue, session, kind)
  for number, letter, name in string.gmatch(queue.expiring or "", "(%d+)(d?):([^%z]*)%z") do
    if name == session and letter == kind then
      return tonumber(number)
    end
  end
end
