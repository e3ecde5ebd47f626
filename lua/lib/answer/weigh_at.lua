-- weigh_at returns what a message counts for in an answer (weigh_entry). A message of more than most bytes is not read,
-- unless a chunk has it: for it, and for one that is gone, the result is nil.
--@include answer/weigh_entry
--@include base/text
--@include log/chunk_over
--@include log/entry_at
local function weigh_at(side, position, most)
  local entry
  if chunk_over(side, position) then
    entry = entry_at(side, position)
  else
    entry = redis.call("XRANGE", side.log, position, position .. "-" .. text(math.max(most, 0)))[1]
  end
  return entry and weigh_entry(side, position, entry)
end
