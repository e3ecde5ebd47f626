-- text writes an integer in full. Lua's own conversion turns large numbers into 1.7e+15.
local function text(number)
  return string.format("%d", number)
end
