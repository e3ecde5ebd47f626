-- history_key gives what a message is remembered by: its id, on a partitioned entity together with its partition (DUP-2),
-- whose length keeps the two apart whatever they are.
local function history_key(partitioned, id, partition)
  if partitioned then
    return #partition .. ":" .. partition .. id
  end
  return id
end
