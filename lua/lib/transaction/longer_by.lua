-- longer_by returns by how many bytes the messages of an operation of a transaction are longer than their tokens say.
--@include base/slice
--@include lock/position_of_lock
local function longer_by(queue, operation, args)
  local side, positions, longer = operation.sub == "" and queue.main or queue.dead, {}, 0
  for i, lock in ipairs(slice(args, operation.from, operation.from + operation.count - 1)) do
    positions[i] = position_of_lock(lock)
  end
  for _, changes in ipairs(redis.call("HMGET", side.modified, unpack(positions))) do
    longer = longer + (changes and string.match(changes, "^%-?%d+") or 0)
  end
  return longer
end
