-- take_available takes the available messages with the lowest positions off a side, at most limit, so that the caller can lock them
-- (RECV-8, RECV-9). Those whose time is over are expired instead (TTL-8). Returns the positions of those that were delivered before, of
-- those that were not, these also as spans { first, last, first, last, ... } with the expired ones among them, and whether there was
-- anything at all.
--@include next_fresh
--@include take_fresh
--@include hold_expiry
--@include entry_at
--@include expire_entry
local function take_available(queue, side, limit)
  local returned = redis.call("ZRANGE", side.ready, 0, limit - 1)
  local fresh, spans
  if #returned == 0 or tonumber(returned[#returned]) <= side.cursor then
    fresh, spans = next_fresh(side, limit - #returned)
  else
    -- A message that was taken by its number and came back may lie behind fresh ones: the lowest numbers go first.
    fresh, spans = next_fresh(side, limit)
    local back, new = 0, 0
    while back + new < limit and (returned[back + 1] or fresh[new + 1]) do
      if fresh[new + 1] and (not returned[back + 1] or tonumber(fresh[new + 1]) < tonumber(returned[back + 1])) then
        new = new + 1
      else
        back = back + 1
      end
    end
    returned = { unpack(returned, 1, back) }
    fresh, spans = next_fresh(side, new)
  end
  if #returned > 0 then
    redis.call("ZREM", side.ready, unpack(returned))
  end
  if #fresh > 0 then
    take_fresh(queue.entity, side, fresh[#fresh])
  end

  local old, old_over = hold_expiry(queue, side, returned)
  local new, new_over = hold_expiry(queue, side, fresh)
  for _, over in ipairs({ old_over, new_over }) do
    for _, position in ipairs(over) do
      local entry = entry_at(side.log, position)
      if entry then
        expire_entry(queue, side, entry)
      end
    end
  end
  return old, new, spans, #returned + #fresh > 0
end
