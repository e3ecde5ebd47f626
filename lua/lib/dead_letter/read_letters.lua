-- read_letters reads the dead letters that resubmit is to move, from a place of args on: see its header.
local function read_letters(args, first)
  local letters = {}
  for i = first, #args, 7 do
    local ends_ms = tonumber(args[i + 2])
    letters[#letters + 1] = {
      number = args[i], ttl_ms = tonumber(args[i + 1]), ends_ms = ends_ms > 0 and ends_ms or nil, id = args[i + 3],
      partition = args[i + 4], session = args[i + 5], further = args[i + 6],
    }
  end
  return letters
end
