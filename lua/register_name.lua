-- register_name: put an entity's name on the namespace's list. The entity itself is the truth, the list only makes it
-- findable, so a name may stand here without its entity, but not the other way round.
-- Reads: names.  Writes: names, registered.
--
-- KEYS[1] names       zset  folded names, all with score 0
-- KEYS[2] registered  hash  folded name -> when it was last put here (ms)
-- ARGV[1] now         int   0 = server time
-- ARGV[2] name        str   folded name
-- ARGV[3] limit       int   most names there may be (QUOTA-1), 0 = no bound
--
-- Returns
--   OK
--   QUOTA_EXCEEDED
-- Cost: O(log names)
--@include now_ms
--@include text
local names, registered = KEYS[1], KEYS[2]
local now, name, limit = now_ms(ARGV[1]), ARGV[2], tonumber(ARGV[3])

if limit > 0 and redis.call("ZCARD", names) >= limit and not redis.call("ZSCORE", names, name) then
  return { "QUOTA_EXCEEDED" }
end
redis.call("ZADD", names, 0, name)
redis.call("HSET", registered, name, text(now))
return { "OK" }
