-- take_available takes the available messages with the lowest positions off a side, at most limit, to be locked
-- (RECV-8, RECV-9). Expired ones leave (TTL-8). fitting, unless nil, gets the positions in order and returns how many
-- of the first to take. Returns the positions that were delivered before; those that were not, also as spans, which
-- include the expired ones; and whether it found any.
--@include available/next_fresh
--@include available/take_fresh
--@include available/merge_positions
--@include base/slice
--@include lock/hold_expiry
--@include log/entry_at
--@include expiry/expire_with_session
--@include entity/note_orphan
local function take_available(queue, side, limit, fitting)
  local returned = redis.call("ZRANGE", side.ready, 0, limit - 1)
  -- A message that was taken by its number and came back may lie behind fresh ones: the lowest numbers go first.
  local mixed = #returned > 0 and tonumber(returned[#returned]) > side.cursor
  local fresh, spans = next_fresh(side, mixed and limit or limit - #returned)
  if mixed or fitting then
    local positions, back = merge_positions(returned, fresh)
    local taken = math.min(limit, #positions)
    if fitting and taken > 0 then
      taken = fitting(slice(positions, 1, taken))
    end
    if taken < #positions then
      returned = slice(returned, 1, back[taken])
      fresh, spans = next_fresh(side, taken - back[taken])
    end
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
      local entry = entry_at(side, position)
      if entry then
        expire_with_session(queue, side, entry)
      else
        note_orphan(queue, position)
      end
    end
  end
  return old, new, spans, #returned + #fresh > 0
end
