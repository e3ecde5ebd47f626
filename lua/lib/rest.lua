-- rest gives the items of a list from one place to another, by default to the end.
local function rest(list, first, last)
  local items = {}
  for i = first, last or #list do
    items[#items + 1] = list[i]
  end
  return items
end
