-- has_changes reports whether a message of a side has changed properties. It looks once in a script.
local function has_changes(side)
  if side.any_changes == nil then
    side.any_changes = redis.call("EXISTS", side.modified) == 1
  end
  return side.any_changes
end
