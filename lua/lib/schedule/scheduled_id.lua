-- scheduled_id returns the member of scheduled_ids for a message: its id, and its member of due. Without that it is the
-- beginning of all with the id. Zero bytes of an id are written otherwise, as in session ids: else one id with a number
-- could be the beginning of another.
local function scheduled_id(id, member)
  if string.find(id, "[%z\1]") then
    id = string.gsub(string.gsub(id, "\1", "\1\2"), "%z", "\1\1")
  end
  return id .. "\0" .. (member or "")
end
