-- text writes an integer in full. Lua's own conversion turns large numbers into 1.7e+15, and
-- Redis refuses the "-0" that the format makes of a negated zero.
local function text(number)
  if number == 0 then
    return "0"
  end
  return string.format("%.0f", number)
end
