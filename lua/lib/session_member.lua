-- session_member gives what stands in by_session for a message of a session: its letter says where the message is, a =
-- available, w = delayed and holding up those behind it, x = delayed and not holding them up, d = deferred, s = scheduled.
-- Without a position it is the beginning of all such members.
local function session_member(session, letter, position)
  if not position then
    return session .. "\0" .. letter
  end
  return session .. "\0" .. letter .. string.format("%016d", position)
end
