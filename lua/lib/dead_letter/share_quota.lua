-- share_quota makes the quota of a topic count for the subscription that dead letters go back to (TOPIC-7). If the
-- topic may be full, it adds up the bytes of the entities in a list of keys from a place on. Returns false if that list
-- does not belong to the routes of now.
--@include log/position_of
--@include log/entry_at
--@include entity/held_bytes
local function share_quota(target, topic, version, dead, letters, keys, first)
  local values, most = redis.call("HMGET", topic, "max_bytes", "version", "most_bytes"), 0
  for _, letter in ipairs(letters) do
    local position = position_of(dead, letter.number)
    local entry = position and entry_at(dead, position)
    most = most + (entry and string.match(entry[1], "%d+$") or 0) + 65536 -- at least what its changes can add
  end
  target.max_bytes, target.held = tonumber(values[1]), tonumber(values[3] or "0")
  if target.held + most > target.max_bytes then
    if values[2] ~= version then
      return false
    end
    target.held = held_bytes(keys, first, #keys)
  end
  return true
end
