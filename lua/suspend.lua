-- suspend: suspend a partition of an idle queue if it was not used for a span (IDLE-8). From then on every other script
-- finds no entity, and create_entity finds that it is suspended. See docs/decisions/0056.
-- Reads: all except logs.  Writes: entity, suspended, transfers_entity, transfers_suspended.
-- Flags: allow-oom
--
-- KEYS[1] entity               hash  options and state
-- KEYS[2] suspended            hash  the same while the partition is suspended
-- KEYS[3] transfers_entity     hash  those of its transfer dead-letter queue
-- KEYS[4] transfers_suspended  hash  the same while the partition is suspended
-- KEYS[5] due                  zset  scheduled message by when it is due (ms)
-- KEYS[6] locks                zset  lock by its end (ms)
-- KEYS[7] run_locks            zset  lock of several messages by its end (ms)
-- KEYS[8] dead_locks           zset  as locks, of the dead-letter queue
-- KEYS[9] session_locks        zset  held session by the end of its lock (ms)
-- KEYS[10] transfers_dead_locks  zset  as locks, of its transfer dead-letter queue
-- KEYS[11] dead_log            stream  dead letters
-- KEYS[12] transfers_dead_log  stream  transfer dead letters
-- ARGV[1] now         int  0 = server time
-- ARGV[2] removal     int  the one that suspends: see begin_removal; "" = none, only look
-- ARGV[3] span_ms     int  AutoDeleteOnIdle
-- ARGV[4] keeps_dead  int  1: not while it has dead letters (IDLE-9)
--
-- Returns
--   OK
--   IN_USE            after_ms  when to look again
--   SUSPENDED         removal   another one has suspended it
--   ENTITY_NOT_FOUND
-- Cost: O(fields of the entity)
--@include base/now_ms
--@include base/text
--@include entity/last_use
local entity, suspended, transfers_entity, transfers_suspended, due = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local locks, run_locks, dead_locks, session_locks, transfers_dead_locks = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local dead_log, transfers_dead_log = KEYS[11], KEYS[12]
local now, removal, span_ms, keeps_dead = now_ms(ARGV[1]), ARGV[2], tonumber(ARGV[3]), ARGV[4] == "1"

local is_suspended = redis.call("HLEN", suspended) > 0
local present = is_suspended and suspended or entity
if redis.call("HLEN", present) == 0 then
  return { "ENTITY_NOT_FOUND" }
end
local at = span_ms + last_use(present, due, { locks, run_locks, dead_locks, session_locks, transfers_dead_locks }, now)
if at > now then
  return { "IN_USE", text(at - now) }
end
if keeps_dead and redis.call("XLEN", dead_log) + redis.call("XLEN", transfers_dead_log) > 0 then
  return { "IN_USE", "30000" } -- as in lib/entity/postpone_removal
end
if removal == "" then
  return { "OK" }
end
if is_suspended then
  local by = redis.call("HGET", suspended, "removal")
  return by == removal and { "OK" } or { "SUSPENDED", by }
end
redis.call("HSET", entity, "removal", removal)
redis.call("RENAME", entity, suspended)
if redis.call("EXISTS", transfers_entity) == 1 then
  redis.call("RENAME", transfers_entity, transfers_suspended)
end
return { "OK" }
