-- unregister_name: take the name of a deleted entity off the namespace's list, unless it was put there again (ENT-17).
-- Reads: registered.  Writes: names, registered, alarms.
-- Flags: allow-oom
--
-- KEYS[1] names       zset  folded names, all with score 0
-- KEYS[2] registered  hash  folded name -> its ticket: see register_name
-- KEYS[3] alarms      zset  folded name by when a sweeper is to come (ms)
-- ARGV[1] name        str   folded name
-- ARGV[2] barred      int   the highest ticket with which no entity of the name can be made any more
--
-- Returns
--   OK
-- Cost: O(log names)
local names, registered, alarms = KEYS[1], KEYS[2], KEYS[3]
local name, barred = ARGV[1], tonumber(ARGV[2])

local ticket = redis.call("HGET", registered, name)
redis.call("ZCARD", alarms) -- as in lib/base/check_key_types
if not ticket or tonumber(ticket) <= barred then
  redis.call("ZREM", names, name)
  redis.call("HDEL", registered, name)
  redis.call("ZREM", alarms, name)
end
return { "OK" }
