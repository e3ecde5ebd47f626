-- run_bytes returns how many bytes a row of requests, or false, counts for. Only answers in runs can be large and
-- count. EACH is of the version before, which did not count them.
local function run_bytes(row)
  return row and string.find(row, ":RUNS ", 1, true) and #row or 0
end
