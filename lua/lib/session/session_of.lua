-- session_of returns the session of a log entry, nil for none: the field s after the payload.
local function session_of(entry)
  local fields = entry[2]
  for i = 3, #fields, 2 do
    if fields[i] == "s" then
      return fields[i + 1]
    end
  end
  return nil
end
