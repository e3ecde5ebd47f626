-- read_request parses how a call begins: "<count>" messages, or under a request id (IDEM-1)
-- "<count>:<digest>:<seed>:<request id>". Returns the number, and the Request or nil.
local function read_request(head)
  local count = tonumber(head)
  if count then
    return count
  end
  local number, digest, seed, id = string.match(head, "^(%d+):([^:]*):([^:]*):(.*)$")
  return tonumber(number), { digest = digest, seed = seed, id = id }
end
