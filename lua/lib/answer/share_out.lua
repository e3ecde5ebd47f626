-- share_out divides messages of a side, in the order given, among calls that are served one after the other, each up to
-- its limit and the bytes it has left (docs/decisions/0012). One message always fits into a call that has none. total
-- is what one script hands out. weights remembers what was weighed. Returns how many messages each call gets, for how
-- many calls the answer is complete, and how many messages that is together.
--@include answer/weigh_at
local function share_out(side, positions, calls, total, weights)
  local counts, complete, at = {}, 0, 1
  local function fits(position, call)
    local weight = weights.even or weights[position] or weigh_at(side, position, call.left)
    weights[position] = weight
    if weight and weight <= call.left then
      return total.is_empty or weight <= total.left, weight
    end
    if call.is_empty then
      return total.is_empty, total.left
    end
    return false, nil
  end
  for n, call in ipairs(calls) do
    local got, full = 0, false
    while positions[at] and got < call.limit and not full do
      local taken, weight = fits(positions[at], call)
      if taken then
        got, at = got + 1, at + 1
        call.left, call.is_empty = call.left - weight, false
        total.left, total.is_empty = total.left - weight, false
      elseif weight then
        counts[n] = got
        return counts, complete, at - 1 -- it is for this call, in another script
      else
        full = true
      end
    end
    counts[n] = got
    if not full and got < call.limit then
      break
    end
    complete = n
  end
  return counts, complete, at - 1
end
