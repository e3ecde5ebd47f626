-- changes_with returns the changed properties of a message with further ones added, nil for none, and by how many bytes
-- the further ones make it larger. further is "" or "<bytes more>:<properties>". Of a field that is changed twice the
-- last change holds.
--@include base/text
local function changes_with(side, position, further)
  local change = redis.call("HGET", side.modified, position) or nil
  if further == "" then
    return change, 0
  end
  local more, before = string.match(change or "0:", "^(%-?%d+):(.*)$")
  local longer, properties = string.match(further, "^(%-?%d+):(.*)$")
  return text(more + longer) .. ":" .. before .. properties, tonumber(longer)
end
