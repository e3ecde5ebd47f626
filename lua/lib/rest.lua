-- rest gives the items of a list from the given place on.
local function rest(list, first)
  local items = {}
  for i = first, #list do
    items[#items + 1] = list[i]
  end
  return items
end
