-- session_member returns the member of by_session for a message. Its letter: a = available, w = delayed and holding up
-- those behind it, x = delayed, d = deferred, s = scheduled. Without a position it is the beginning of all such
-- members.
local function session_member(session, letter, position)
  if not position then
    return session .. "\0" .. letter
  end
  return session .. "\0" .. letter .. string.format("%016d", position)
end
