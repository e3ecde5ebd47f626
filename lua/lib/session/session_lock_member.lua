-- session_lock_member returns the form in which the lock of a message of a session is kept. nonce begins with ":".
local function session_lock_member(session, position, nonce)
  return session .. "\0" .. string.format("%016d", position) .. nonce
end
