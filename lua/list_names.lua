-- list_names: read one page of the namespace's list in order of name.
-- Reads: names.  Writes: nothing.
-- Flags: no-writes
--
-- KEYS[1] names  zset  folded names, all with score 0
-- ARGV[1] after  str   folded name to begin after, "" = from the start
-- ARGV[2] limit  int   most names to return
--
-- Returns
--   OK  name ...
-- Cost: O(log names + limit)
local names = KEYS[1]
local after, limit = ARGV[1], ARGV[2]

local from = after == "" and "-" or "(" .. after
return { "OK", redis.call("ZRANGE", names, from, "+", "BYLEX", "LIMIT", 0, limit) }
