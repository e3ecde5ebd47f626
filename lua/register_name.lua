-- register_name: put an entity's name on the namespace's list. The entity itself is the truth, the list only makes it
-- findable, so a name may stand here without its entity, but not the other way round.
-- Reads: nothing.  Writes: names, registered.
--
-- KEYS[1] names       zset  folded names, all with score 0
-- KEYS[2] registered  hash  folded name -> when it was last put here (ms)
-- ARGV[1] now         int   0 = server time
-- ARGV[2] name        str   folded name
--
-- Returns
--   OK
-- Cost: O(log names)
--@include now_ms
--@include text
local names, registered = KEYS[1], KEYS[2]
local now, name = now_ms(ARGV[1]), ARGV[2]

redis.call("ZADD", names, 0, name)
redis.call("HSET", registered, name, text(now))
return { "OK" }
