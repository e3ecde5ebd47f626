-- next_fresh returns the next positions that were never handed out, at most limit, and the same as spans { first, last,
-- first, last, ... } without gaps.
--@include base/text
local function next_fresh(side, limit)
  local positions, spans = {}, {}
  local from, gaps, at = side.cursor + 1, {}, 1
  if limit > 0 and from <= side.sequence and redis.call("EXISTS", side.gaps) == 1 then
    gaps = redis.call("ZRANGE", side.gaps, 0, limit)
  end
  while #positions < limit and from <= side.sequence do
    local gap_first, gap_last = nil, nil
    if gaps[at] then
      gap_first, gap_last = string.match(gaps[at], "^(%d+)%-(%d+)$")
    end
    local to = math.min(gap_first and gap_first - 1 or side.sequence, from + limit - #positions - 1)
    if to >= from then
      for position = from, to do
        positions[#positions + 1] = text(position)
      end
      spans[#spans + 1], spans[#spans + 2] = text(from), text(to)
    end
    if not gap_last then
      break
    end
    from, at = gap_last + 1, at + 1
  end
  return positions, spans
end
