-- reserve_copies adds admitted copies, counted by subscription (count_copies), to the messages of the subscriptions
-- that may not have any number.
local function reserve_copies(targets, counts)
  for i, count in pairs(counts) do
    targets[i].messages = targets[i].messages and targets[i].messages + count
  end
end
