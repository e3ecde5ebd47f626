-- forget_changes drops the changed properties of a message (SETTLE-5). Returns by how many bytes they made it larger.
local function forget_changes(side, position)
  local changed = redis.call("HGET", side.modified, position)
  if not changed then
    return 0
  end
  redis.call("HDEL", side.modified, position)
  return tonumber(string.match(changed, "^%-?%d+"))
end
