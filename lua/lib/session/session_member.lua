-- session_member returns the member of by_session for a message. Its letter: a = available, w = delayed and holding up
-- those behind it, x = delayed, d = deferred, s = scheduled. Without a position it is the beginning of all such
-- members.
local function session_member(session, letter, position)
  return session .. "\0" .. letter .. (position and string.format("%016d", position) or "")
end
