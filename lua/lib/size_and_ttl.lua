-- size_and_ttl takes "<size>:<ttl_ms>" apart, the form for messages with a time to live of their own, or "<size>" of others.
local function size_and_ttl(head)
  if tonumber(head) then
    return head, -1
  end
  local size, ttl_ms = string.match(head, "^(%d+):(%d+)$")
  return size, tonumber(ttl_ms)
end
