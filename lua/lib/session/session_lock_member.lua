-- session_lock_member returns the form in which the lock "<position>:<nonce>" of a message of a session is kept.
local function session_lock_member(session, lock)
  local position, nonce = string.match(lock, "^(%d+)(:.*)$")
  return session .. "\0" .. string.format("%016d", position) .. nonce
end
