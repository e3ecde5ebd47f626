-- merge_positions merges two ascending lists of positions. Returns the list, and for each place, 0 included, how many
-- up to there are of the first list.
local function merge_positions(one, other)
  local merged, of_one, first, second = {}, { [0] = 0 }, 1, 1
  while one[first] or other[second] do
    if one[first] and (not other[second] or tonumber(one[first]) < tonumber(other[second])) then
      merged[#merged + 1], first = one[first], first + 1
    else
      merged[#merged + 1], second = other[second], second + 1
    end
    of_one[#merged] = first - 1
  end
  return merged, of_one
end
