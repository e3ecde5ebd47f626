-- take_unlocked takes the message at a position off the index that says it is available or deferred, so that the caller can
-- lock or remove it. Returns false when it is none of these: locked, or not there.
--@include is_fresh
--@include add_gap
local function take_unlocked(entity, side, position)
  if redis.call("ZREM", side.ready, position) + redis.call("ZREM", side.delayed, position) > 0 then
    return true
  end
  local deferred = redis.call("ZSCORE", side.deferred, position)
  if deferred and tonumber(deferred) > 0 then
    redis.call("ZREM", side.deferred, position)
    return true
  end
  if is_fresh(side, position) then
    add_gap(entity, side, tonumber(position), tonumber(position))
    return true
  end
  return false
end
