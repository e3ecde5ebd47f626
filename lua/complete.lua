-- complete: remove locked messages for good (SETTLE-3).
-- Reads: locks.  Writes: entity, log, locks, deliveries, expiry, deferred, modified, dead_numbers.
-- Flags: allow-oom
--
-- KEYS[1] entity        hash    options and state of the queue
-- KEYS[2] log           stream  messages of the source, id = <position>-<size>
-- KEYS[3] locks         zset    lock by its end (ms)
-- KEYS[4] deliveries    hash    position -> failed deliveries
-- KEYS[5] expiry        zset    position by ExpiresAt (ms), with the sign turned while it is locked
-- KEYS[6] deferred      zset    position by itself, with the sign turned while it is locked
-- KEYS[7] modified      hash    position -> changed properties
-- KEYS[8] dead_numbers  zset    dead-letter position by sequence number
-- ARGV[1] now           int     0 = server time
-- ARGV[2] sub           str     "" or "dead_": which of the two queues is the source
-- ARGV[3] bytes         int     sum of the sizes in the ids
-- ARGV[4..] lock ... id ...  str  at most 1000 locks, then as many ids, in the same order
--
-- Returns
--   OK                all done
--   SOME              1 or 0 per lock: done, or lost
--   ENTITY_NOT_FOUND
--   SESSION_REQUIRED  see complete_in_sessions
-- Cost: O(locks)
--@include now_ms
--@include text
--@include touch
--@include rest
--@include live_locks
--@include lock_position
--@include forget_modified
local entity, log, locks, deliveries, expiry, deferred, dead_numbers = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[8]
local side = { modified = KEYS[7] }
local now, sub, bytes = now_ms(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local count = (#ARGV - 3) / 2

local values = redis.call("HMGET", entity, "kind", "requires_session")
if not values[1] or values[1] == "topic" then
  return { "ENTITY_NOT_FOUND" }
end
if values[2] == "1" and sub == "" then
  return { "SESSION_REQUIRED" }
end
touch(entity, now)

-- all_live says whether every lock holds and none is named twice. Nearly always it is so, and then nothing needs to be
-- sorted out.
local function all_live(wanted)
  local seen = {}
  for i, ends in ipairs(redis.call("ZMSCORE", locks, unpack(wanted))) do
    local lock = wanted[i]
    if not ends or tonumber(ends) <= now or seen[lock] then
      return false
    end
    seen[lock] = true
  end
  return true
end

-- clean_up removes what is kept beside the log for messages that are gone.
local function clean_up(held)
  if sub == "" and redis.call("EXISTS", deliveries, expiry, deferred, side.modified) == 0 then
    return
  end
  local positions = {}
  for i, lock in ipairs(held) do
    positions[i] = lock_position(lock)
    bytes = bytes + forget_modified(side, positions[i])
  end
  redis.call("HDEL", deliveries, unpack(positions))
  redis.call("ZREM", expiry, unpack(positions))
  redis.call("ZREM", deferred, unpack(positions))
  if sub ~= "" then
    redis.call("ZREM", dead_numbers, unpack(positions))
  end
end

local wanted = rest(ARGV, 4, 3 + count)
if all_live(wanted) then
  redis.call("ZREM", locks, unpack(wanted))
  redis.call("XDEL", log, unpack(ARGV, 4 + count))
  clean_up(wanted)
  redis.call("HINCRBY", entity, sub .. "bytes", text(-bytes))
  return { "OK" }
end

local live, held = live_locks(locks, wanted, now)
local results, ids = { "SOME" }, {}
bytes = 0
for i = 1, count do
  results[i + 1] = live[i] and 1 or 0
  if live[i] then
    local id = ARGV[3 + count + i]
    ids[#ids + 1] = id
    bytes = bytes + string.match(id, "%d+$")
  end
end
if #held > 0 then
  redis.call("ZREM", locks, unpack(held))
  redis.call("XDEL", log, unpack(ids))
  clean_up(held)
  redis.call("HINCRBY", entity, sub .. "bytes", text(-bytes))
end
return results
