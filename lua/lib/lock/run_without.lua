-- run_without takes positions out of a run. Both are texts, "<first>-<last>,<first>-<last>,...", in order. Returns what
-- is left of the run, nil for nothing; what was taken, as first and last in turn; and how many positions that is.
--@include base/text
local function run_without(run, wanted)
  local have, left, taken, count, at = {}, {}, {}, 0, 1
  for first, last in string.gmatch(run, "(%d+)%-(%d+)") do
    have[#have + 1], have[#have + 2] = tonumber(first), tonumber(last)
  end
  local function keep(first, last)
    left[#left + 1] = text(first) .. "-" .. text(last)
  end
  for first, last in string.gmatch(wanted, "(%d+)%-(%d+)") do
    first, last = tonumber(first), tonumber(last)
    while have[at] and have[at + 1] < first do
      keep(have[at], have[at + 1])
      at = at + 2
    end
    while have[at] and have[at] <= last do
      local from, to = math.max(first, have[at]), math.min(last, have[at + 1])
      if have[at] < from then
        keep(have[at], from - 1)
      end
      taken[#taken + 1], taken[#taken + 2], count = from, to, count + to - from + 1
      if to == have[at + 1] then
        at = at + 2
      else
        have[at] = to + 1
      end
    end
  end
  while have[at] do
    keep(have[at], have[at + 1])
    at = at + 2
  end
  return #left > 0 and table.concat(left, ",") or nil, taken, count
end
