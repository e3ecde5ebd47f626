-- lock_parts takes a lock apart: "<position>:<size>:<nonce>" is the form in which locks are kept.
local function lock_parts(lock)
  local position, size = string.match(lock, "^(%d+):(%d+):")
  return position, tonumber(size)
end
