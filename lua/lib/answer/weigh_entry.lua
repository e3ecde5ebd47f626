-- weigh_entry returns what a log entry counts for in an answer: what is stored, the texts of a dead letter twice
-- because the answer has them twice, and 256 bytes for the rest (docs/limits.md).
--@include log/has_changes
local function weigh_entry(side, position, entry)
  local fields = entry[2]
  local weight = 256 + #fields[2]
  for i = 3, #fields, 2 do
    if fields[i] == "r" or fields[i] == "d" then
      weight = weight + 2 * #fields[i + 1]
    end
  end
  local change = has_changes(side) and redis.call("HGET", side.modified, position)
  return weight + (change and #change or 0)
end
