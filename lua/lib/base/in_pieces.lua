-- in_pieces calls a function with a list in pieces that unpack can take.
local function in_pieces(list, with)
  for first = 1, #list, 1000 do
    with(unpack(list, first, math.min(first + 999, #list)))
  end
end
