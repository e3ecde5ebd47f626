-- lock_position gives the position of a lock: "<position>:<nonce>" is the form in which locks are kept.
local function lock_position(lock)
  return string.match(lock, "^%d+")
end
