-- fit_members returns those of a session's next members that fit into the answer of a call, and why the others are left
-- out: "full" = the answer is, "later" = the script returns no more. call and total are as in share_out.
--@include answer/is_heavy
--@include answer/even_weight
--@include answer/share_out
--@include base/slice
--@include base/text
local function fit_members(queue, members, call, total)
  local first = call.is_empty and total.is_empty
  local safe = math.floor(math.min(call.left, total.left) / #members)
  if (#members == 1 and first) or not is_heavy(queue, queue.main, math.max(safe, 1)) then
    total.left, total.is_empty = total.left - #members * (queue.largest + 256), false
    return members
  end
  local positions = {}
  for i, member in ipairs(members) do
    positions[i] = text(string.sub(member, -16))
  end
  local _, complete, fitting = share_out(queue.main, positions, { call }, total,
    { even = even_weight(queue, queue.main) })
  if fitting == #members then
    return members
  end
  return slice(members, 1, fitting), complete == 1 and "full" or "later"
end
