-- position_of_lock parses the position of a lock, "<position>:<nonce>".
local function position_of_lock(lock)
  return string.match(lock, "^%d+")
end
