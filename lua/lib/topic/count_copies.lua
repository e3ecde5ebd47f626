-- count_copies adds to counts, by subscription, how many copies of a message it is to have that are no dead letters.
--@include topic/each_copy
local function count_copies(counts, copies)
  each_copy(copies.text, function(i, _, reason)
    counts[i] = (counts[i] or 0) + (reason and 0 or 1)
  end)
end
