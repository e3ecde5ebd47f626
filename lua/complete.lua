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
-- KEYS[11] chunks       zset    "<first>-<bytes>:<last>:<size>,..." by first, of log entries with several messages
-- KEYS[12] bodies       hash    of a subscription: bodies that several copies share, by number in the topic
-- KEYS[13] body_uses    hash    of a subscription: see lib/topic/store_group.lua
-- ARGV[1] now           str     "<ms>", 0 = server time, or "<ms>;<level>": see lib/entity/lacks_fence.lua
-- ARGV[2] sub           str     "" or "dead_": which of the two queues is the source
-- ARGV[3] locks         int     number of locks, at most 1000, none twice
-- ARGV[4] sizes         str     "<size>*<messages>,..." of the messages, in order
-- ARGV[5] count         int     number of nonces
-- ARGV[6..?] nonce positions ...  str  for each nonce the positions of its locks in the form of a run
--
-- Returns
--   OK                all done
--   SOME              1 or 0 per lock: done, or lost
--   ENTITY_NOT_FOUND
--   SESSION_REQUIRED  see turn
--   NEEDS_FENCE     level   the caller must wait for that durability; nothing was done
-- Cost: O(locks)
--@include base/now_ms
--@include lock/complete_runs
local entity, log, locks = KEYS[1], KEYS[2], KEYS[3]
local now, awaited = now_ms(ARGV[1])
local sub, total, sizes = ARGV[2], tonumber(ARGV[3]), ARGV[4]
local count, nonces, runs = tonumber(ARGV[5]), {}, {}
for i = 1, count do
  nonces[i], runs[i] = ARGV[4 + 2 * i], ARGV[5 + 2 * i]
end

local values = redis.call("HMGET", entity, "kind", "requires_session", "run_messages", sub .. "bytes", "chunked",
  "chunk_extra")
if awaited or (values[1] ~= "queue" and values[1] ~= "subscription") then
  if not values[1] or values[1] == "topic" or values[1] == "partitioned_queue" then
    return { "ENTITY_NOT_FOUND" }
  end
  local level = redis.call("HGET", entity, "durability") or "SIDECAR" -- as in lib/entity/lacks_fence
  if level ~= (awaited or "SIDECAR") then
    return { "NEEDS_FENCE", level }
  end
end
if values[2] == "1" and sub == "" then
  return { "SESSION_REQUIRED" }
end
local side = {
  entity = entity, log = log, locks = locks, modified = KEYS[7], runs = sub == "" and KEYS[9] or nil,
  run_locks = KEYS[10], run_messages = tonumber(values[3] or "0"), bytes = tonumber(values[4] or "0"),
  chunks = KEYS[11], chunked = sub == "" and tonumber(values[5] or "0") or 0, chunk_extra = tonumber(values[6] or "0"),
  bodies = KEYS[12], body_uses = KEYS[13],
}
if values[1] ~= "queue" and side.chunked > 0 then -- as in lib/base/check_key_types
  redis.call("HLEN", side.bodies)
  redis.call("HLEN", side.body_uses)
end
if sub == "" and total > 0 and complete_runs(entity, side, nonces, runs, total, sizes, now) then
  return { "OK" }
end
--@rare
--@include base/text
--@include entity/touch
--@include lock/locks_of_run
--@include lock/leave_runs
--@include lock/position_of_lock
--@include log/delete_ids
--@include log/forget_changes
--@include log/parse_sizes
local deliveries, expiry, deferred, dead_numbers = KEYS[4], KEYS[5], KEYS[6], KEYS[8]
local wanted, ids = {}, parse_sizes(sizes)
for i = 1, count do
  for _, lock in ipairs(locks_of_run(nonces[i], runs[i])) do
    wanted[#wanted + 1] = lock
    ids[#wanted] = position_of_lock(lock) .. "-" .. ids[#wanted]
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
redis.call("ZCARD", side.chunks)

leave_runs(entity, side, wanted)
-- held are the locks that hold now (LOCK-7).
local held, held_ids = {}, {}
for i, ends in ipairs(#wanted > 0 and redis.call("ZMSCORE", locks, unpack(wanted)) or {}) do
  if ends and tonumber(ends) > now then
    held[#held + 1], held_ids[#held_ids + 1] = wanted[i], ids[i]
  end
end
touch(entity, now)

local gone, bytes, wrong = {}, 0, nil
if #held > 0 then
  bytes, wrong = delete_ids(side, held_ids)
end
for i, lock in ipairs(held) do
  if not (wrong and wrong[held_ids[i]]) then
    gone[#gone + 1] = lock
  end
end
if #gone > 0 then
  redis.call("ZREM", locks, unpack(gone))
  if beside then
    local positions = {}
    for i, lock in ipairs(gone) do
      positions[i] = position_of_lock(lock)
      bytes = bytes + forget_changes(side, positions[i])
    end
    redis.call("HDEL", deliveries, unpack(positions))
    redis.call("ZREM", expiry, unpack(positions))
    redis.call("ZREM", deferred, unpack(positions))
    if sub ~= "" then
      redis.call("ZREM", dead_numbers, unpack(positions))
    end
  end
  redis.call("HINCRBY", entity, sub .. "bytes", text(-bytes))
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
