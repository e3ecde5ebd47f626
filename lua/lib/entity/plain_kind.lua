-- plain_kind returns the kind of an entity without regard to whether it asks for a durability of its own, nil for none.
local function plain_kind(kind)
  return kind and string.gsub(kind, "^fenced_", "") or nil
end
