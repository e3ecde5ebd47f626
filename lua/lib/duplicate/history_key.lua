-- history_key returns what duplicate detection knows a message by: its id, on a partitioned entity with its partition
-- (DUP-2), whose length keeps the two apart.
local function history_key(partitioned, id, partition)
  if partitioned then
    return #partition .. ":" .. partition .. id
  end
  return id
end
