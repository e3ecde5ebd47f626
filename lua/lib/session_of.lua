-- session_of gives the session of a log entry, nil when it has none: the field s behind the payload.
local function session_of(entry)
  local fields = entry[2]
  for i = 3, #fields, 2 do
    if fields[i] == "s" then
      return fields[i + 1]
    end
  end
  return nil
end
