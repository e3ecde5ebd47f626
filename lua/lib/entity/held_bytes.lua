-- held_bytes adds up the bytes that entities hold: a queue, or a topic and all its subscriptions (TOPIC-7). Their keys
-- are in a list from one place to another. Returns all bytes, and those of dead letters.
local function held_bytes(keys, first, last)
  local bytes, dead_bytes = 0, 0
  for i = first, last do
    local sizes = redis.call("HMGET", keys[i], "bytes", "dead_bytes", "state_bytes")
    dead_bytes = dead_bytes + (sizes[2] or 0)
    bytes = bytes + (sizes[1] or 0) + (sizes[2] or 0) + (sizes[3] or 0)
  end
  return bytes, dead_bytes
end
