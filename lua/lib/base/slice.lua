-- slice returns the items of a list from one place to another, by default to the end. Lua cannot unpack more than about
-- 8,000 values.
local function slice(list, first, last)
  last = last or #list
  if last - first < 4000 then
    return { unpack(list, first, last) }
  end
  local items = {}
  for i = first, last do
    items[#items + 1] = list[i]
  end
  return items
end
