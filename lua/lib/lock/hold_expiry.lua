-- hold_expiry divides messages that are about to be locked. Returns those that can be, and those that expired (TTL-8).
-- It turns the sign of the others' expiry, so that nothing expires while it is locked (TTL-9).
local function hold_expiry(queue, side, positions)
  if #positions == 0 or redis.call("EXISTS", side.expiry) == 0 then
    return positions, {}
  end
  local live, over, turned = {}, {}, {}
  for i, expires in ipairs(redis.call("ZMSCORE", side.expiry, unpack(positions))) do
    if expires and tonumber(expires) <= queue.now then
      over[#over + 1] = positions[i]
    else
      live[#live + 1] = positions[i]
      if expires then
        turned[#turned + 1], turned[#turned + 2] = -expires, positions[i]
      end
    end
  end
  if #turned > 0 then
    redis.call("ZADD", side.expiry, unpack(turned))
  end
  return live, over
end
