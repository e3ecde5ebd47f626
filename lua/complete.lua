-- complete: remove locked messages (SETTLE-3).
-- Reads: locks.  Writes: entity, log, locks, deliveries, expiry, deferred, modified, dead_numbers.
-- Flags: allow-oom
--
-- KEYS[1] entity        hash    options and state of the queue
-- KEYS[2] log           stream  messages of the source, id = <position>-<size>
-- KEYS[3] locks         zset    lock by its end (ms)
-- KEYS[4] deliveries    hash    position -> failed deliveries
-- KEYS[5] expiry        zset    position by ExpiresAt (ms), with the sign turned while it is locked
-- KEYS[6] deferred      zset    position by position; the score is negative while it is locked
-- KEYS[7] modified      hash    position -> changed properties
-- KEYS[8] dead_numbers  zset    dead-letter position by sequence number
-- KEYS[9] runs          hash    of the main side: nonce -> "<first>-<last>,..." of the messages that share a lock
-- KEYS[10] run_locks    zset    nonce of a run by the end of its lock (ms)
-- ARGV[1] now           int     0 = server time
-- ARGV[2] sub           str     "" or "dead_": which of the two queues is the source
-- ARGV[3] count         int     number of nonces
-- ARGV[4..?] nonce positions ... id ...  str  for each nonce the positions of its locks in the form of a run, of at
--                               most 1000 locks in all; then as many ids, in the same order
--
-- Returns
--   OK                all done
--   SOME              1 or 0 per lock: done, or lost
--   ENTITY_NOT_FOUND
--   SESSION_REQUIRED  see complete_in_sessions
-- Cost: O(locks)
--@include base/now_ms
--@include base/text
--@include base/slice
--@include lock/run_without
--@include lock/save_run
--@include log/delete_ids
local entity, log, locks = KEYS[1], KEYS[2], KEYS[3]
local now, sub, count = now_ms(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local ids = slice(ARGV, 4 + 2 * count)

local values = redis.call("HMGET", entity, "kind", "requires_session", "run_messages", sub .. "bytes")
if not values[1] or values[1] == "topic" then
  return { "ENTITY_NOT_FOUND" }
end
if values[2] == "1" and sub == "" then
  return { "SESSION_REQUIRED" }
end
local side = {
  locks = locks, modified = KEYS[7], runs = sub == "" and KEYS[9] or nil, run_locks = KEYS[10],
  run_messages = tonumber(values[3] or "0"),
}

-- complete_runs completes messages that are all in runs whose locks hold. Else it returns false, and at most messages
-- have left the log whose locks hold.
local function complete_runs()
  local nonces = {}
  for i = 1, count do
    nonces[i] = ARGV[2 + 2 * i]
  end
  local ends, total, over, lefts = redis.call("ZMSCORE", side.run_locks, unpack(nonces)), 0, {}, {}
  for i, run in ipairs(redis.call("HMGET", side.runs, unpack(nonces))) do
    if not run or not ends[i] or tonumber(ends[i]) <= now then
      return false
    end
    local left, _, taken = run_without(run, ARGV[3 + 2 * i])
    total, lefts[i] = total + taken, left or false
    over[#over + 1] = not left and nonces[i] or nil
  end
  redis.call("XLEN", log) -- as in lib/base/check_key_types
  if #over < count then
    redis.call("ZCARD", locks)
  end
  if total < #ids then
    return false
  end
  local bytes, wrong = delete_ids(log, ids)
  if wrong then
    return false
  end
  side.run_messages = side.run_messages - total
  if #over > 0 then
    redis.call("HDEL", side.runs, unpack(over))
    redis.call("ZREM", side.run_locks, unpack(over))
  end
  for i, left in ipairs(lefts) do
    if left then
      save_run(side, nonces[i], left, ends[i])
    end
  end
  redis.call("HSET", entity, "accessed_ms", text(now), "bytes", text((values[4] or 0) - bytes), "run_messages",
    text(side.run_messages))
  return true
end
if sub == "" and count > 0 and complete_runs() then
  return { "OK" }
end
--@rare
--@include entity/touch
--@include lock/live_locks
--@include lock/locks_of_run
--@include lock/leave_runs
--@include lock/position_of_lock
--@include log/forget_changes
local deliveries, expiry, deferred, dead_numbers = KEYS[4], KEYS[5], KEYS[6], KEYS[8]
local wanted = {}
for i = 1, count do
  for _, lock in ipairs(locks_of_run(ARGV[2 + 2 * i], ARGV[3 + 2 * i])) do
    wanted[#wanted + 1] = lock
  end
end

-- As in lib/base/check_key_types, of what is kept beside the log: nearly always nothing.
local beside = sub ~= "" or redis.call("EXISTS", deliveries, expiry, deferred, side.modified) > 0
if beside then
  for _, key in ipairs({ expiry, deferred, dead_numbers }) do
    redis.call("ZCARD", key)
  end
  redis.call("HLEN", deliveries)
  redis.call("HLEN", side.modified)
end
redis.call("XLEN", log)

-- all_live reports whether every lock holds and none is named twice. Nearly always it is so, and then nothing needs
-- to be sorted out.
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

-- clean_up removes what is kept beside the log for messages that are gone. Returns by how many bytes it had made them
-- larger.
local function clean_up(gone)
  if not beside then
    return 0
  end
  local positions, more = {}, 0
  for i, lock in ipairs(gone) do
    positions[i] = position_of_lock(lock)
    more = more + forget_changes(side, positions[i])
  end
  redis.call("HDEL", deliveries, unpack(positions))
  redis.call("ZREM", expiry, unpack(positions))
  redis.call("ZREM", deferred, unpack(positions))
  if sub ~= "" then
    redis.call("ZREM", dead_numbers, unpack(positions))
  end
  return more
end

leave_runs(entity, side, wanted)
local held, held_ids = wanted, ids
if #wanted > 0 and not all_live(wanted) then
  local live
  live, held = live_locks(locks, wanted, now)
  held_ids = {}
  for i, id in ipairs(ids) do
    held_ids[#held_ids + 1] = live[i] and id or nil
  end
end
touch(entity, now)
local gone = {}
if #held > 0 then
  local bytes, wrong = delete_ids(log, held_ids)
  for i, lock in ipairs(wrong and held or {}) do
    gone[#gone + 1] = not wrong[held_ids[i]] and lock or nil
  end
  gone = wrong and gone or held
  if #gone > 0 then
    redis.call("ZREM", locks, unpack(gone))
    redis.call("HINCRBY", entity, sub .. "bytes", text(-bytes - clean_up(gone)))
  end
end
if #gone == #wanted then
  return { "OK" }
end
local results, at = { "SOME" }, 1 -- gone has the order of wanted
for i, lock in ipairs(wanted) do
  results[i + 1] = gone[at] == lock and 1 or 0
  at = at + results[i + 1]
end
return results
