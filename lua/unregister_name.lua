-- unregister_name: take a deleted entity's name off the namespace's list, unless it was put there again since.
-- Reads: registered.  Writes: names, registered, alarms.
-- Flags: allow-oom
--
-- KEYS[1] names       zset  folded names, all with score 0
-- KEYS[2] registered  hash  folded name -> when it was last put here (ms)
-- KEYS[3] alarms      zset  folded name by when a sweeper is to come (ms)
-- ARGV[1] name        str   folded name
-- ARGV[2] deleted_ms  int   when the entity was deleted
--
-- Returns
--   OK
-- Cost: O(log names)
local names, registered, alarms = KEYS[1], KEYS[2], KEYS[3]
local name, deleted_ms = ARGV[1], tonumber(ARGV[2])

local since = redis.call("HGET", registered, name)
if not since or tonumber(since) <= deleted_ms then
  redis.call("ZREM", names, name)
  redis.call("HDEL", registered, name)
  redis.call("ZREM", alarms, name)
end
return { "OK" }
