-- resume: make a partition an entity again that was suspended by a removal, which does not complete any more (IDLE-8).
-- Reads: suspended.  Writes: entity, suspended, transfers_entity, transfers_suspended.
-- Flags: allow-oom
--
-- KEYS[1] entity               hash  options and state
-- KEYS[2] suspended            hash  the same while the partition is suspended
-- KEYS[3] transfers_entity     hash  those of its transfer dead-letter queue
-- KEYS[4] transfers_suspended  hash  the same while the partition is suspended
-- ARGV[1] removal  int  the one that suspended it; if it is another one by now, nothing is done
--
-- Returns
--   OK
-- Cost: O(1)
local entity, suspended, transfers_entity, transfers_suspended = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local removal = ARGV[1]

if redis.call("HGET", suspended, "removal") == removal then
  redis.call("HDEL", suspended, "removal")
  redis.call("RENAME", suspended, entity)
  if redis.call("EXISTS", transfers_suspended) == 1 then
    redis.call("RENAME", transfers_suspended, transfers_entity)
  end
end
return { "OK" }
