-- rest gives the items of a list from one place to another, by default to the end.
local function rest(list, first, last)
  return { unpack(list, first, last or #list) }
end
