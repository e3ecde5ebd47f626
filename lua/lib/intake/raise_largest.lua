-- raise_largest remembers the size of the largest payload that an entity ever took.
local function raise_largest(entity, bytes)
  if bytes > entity.largest then
    entity.largest = bytes
    redis.call("HSET", entity.entity, "largest", bytes)
  end
end
