-- release_bodies notes that one chunk less refers to a group of bodies, "" = none, and deletes it if none is left.
local function release_bodies(side, group)
  local left, numbers = group ~= "" and redis.call("HINCRBY", side.body_uses, group, -32) or 32, {}
  for i = 0, left < 32 and left or -1 do
    numbers[i + 1] = string.format("%d", group + i)
  end
  if left < 32 then
    redis.call("HDEL", side.body_uses, group)
    redis.call("HDEL", side.bodies, "", unpack(numbers))
  end
end
