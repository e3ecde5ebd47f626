-- size_and_ttl parses "<size>:<ttl_ms>", or "<size>" of a message without a time to live of its own.
local function size_and_ttl(head)
  if tonumber(head) then
    return head, -1
  end
  local size, ttl_ms = string.match(head, "^(%d+):(%d+)$")
  return size, tonumber(ttl_ms)
end
