-- is_before reports whether a text comes before another by bytes, as BYLEX compares them. Lua's < depends on the locale
-- of Redis.
local function is_before(one, other)
  for i = 1, math.min(#one, #other) do
    local byte, against = string.byte(one, i), string.byte(other, i)
    if byte ~= against then
      return byte < against
    end
  end
  return #one < #other
end
