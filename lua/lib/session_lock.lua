-- session_lock gives the form in which the lock "<position>:<nonce>" of a message of a session is kept.
local function session_lock(session, lock)
  local position, nonce = string.match(lock, "^(%d+)(:.*)$")
  return session .. "\0" .. string.format("%016d", position) .. nonce
end
