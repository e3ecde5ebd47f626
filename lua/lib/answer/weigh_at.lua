-- weigh_at returns what a message counts for in an answer (weigh_entry). A message of more than most bytes is not read:
-- for it, and for one that is gone, the result is nil.
--@include answer/weigh_entry
--@include base/text
local function weigh_at(side, position, most)
  local entry = redis.call("XRANGE", side.log, position, position .. "-" .. text(math.max(most, 0)))[1]
  return entry and weigh_entry(side, position, entry)
end
