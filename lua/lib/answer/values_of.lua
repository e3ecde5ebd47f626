-- values_of returns what a hash has for messages, as position and value in turn, without those it has nothing for.
local function values_of(hash, positions)
  local known = {}
  if #positions == 0 then
    return known
  end
  for i, value in ipairs(redis.call("HMGET", hash, unpack(positions))) do
    if value then
      known[#known + 1], known[#known + 2] = positions[i], value
    end
  end
  return known
end
