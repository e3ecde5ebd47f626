-- ticket: read the ticket of a name on the namespace's list.
-- Reads: registered.  Writes: nothing.
-- Flags: no-writes
--
-- KEYS[1] registered  hash  folded name -> its ticket: see register_name
-- ARGV[1] name        str   folded name
--
-- Returns
--   OK  ticket    0 = the name is not there
-- Cost: O(1)
local registered, name = KEYS[1], ARGV[1]

return { "OK", redis.call("HGET", registered, name) or "0" }
