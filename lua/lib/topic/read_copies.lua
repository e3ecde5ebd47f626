-- read_copies reads the copies of a message from a list of arguments: their number, their text (each_copy), the number
-- of forms, for each "<size>" or "<size>:<ttl_ms>", session and payload, the number of reasons, for each its letter
-- (dead_letter_incoming), reason and description, with "=" before them if there. Returns them, and where the list goes
-- on.
--@include log/size_and_ttl
local function read_copies(args, at)
  local forms, reasons = {}, nil
  local number, copies, count = tonumber(args[at]), args[at + 1], tonumber(args[at + 2])
  at = at + 3
  for i = 1, count do
    local size, ttl_ms = size_and_ttl(args[at])
    forms[i] = { size = size, bytes = tonumber(size), ttl_ms = ttl_ms, session = args[at + 1], payload = args[at + 2] }
    at = at + 3
  end
  count = tonumber(args[at])
  at = at + 1
  for i = 1, count do
    local reason, description = args[at + 1], args[at + 2]
    reasons = reasons or {}
    reasons[i] = {
      cause = args[at], reason = reason ~= "" and string.sub(reason, 2) or nil,
      description = description ~= "" and string.sub(description, 2) or nil,
    }
    at = at + 3
  end
  return { count = number, text = copies, forms = forms, reasons = reasons }, at
end
