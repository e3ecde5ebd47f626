-- complete_in_sessions: remove locked messages of held sessions (SETTLE-3). Calls of several sessions share one
-- script.
-- Reads: entity, locks, session_locks, session_tokens.  Writes: entity, log, locks, deliveries, expiry, deferred,
-- modified,
-- session_waiting.
-- Flags: allow-oom
--
-- KEYS[1] entity           hash    options and state of the queue
-- KEYS[2] log              stream  messages of the queue, id = <position>-<size>
-- KEYS[3] locks            zset    session_lock_member of what is handed out
-- KEYS[4] deliveries       hash    position -> failed deliveries
-- KEYS[5] expiry           zset    position by ExpiresAt (ms), with the sign turned while it is locked
-- KEYS[6] deferred         zset    position by position; the score is negative while it is locked
-- KEYS[7] modified         hash    position -> changed properties
-- KEYS[8] session_locks    zset    held session by the end of its lock (ms)
-- KEYS[9] session_tokens   hash    token -> session it holds
-- KEYS[10] session_waiting hash    session -> where its holder waits
-- ARGV[1] now              int     0 = server time
-- ARGV[2..] token lock id ...  str  at most 1000 times: the session's token, the lock, and the id of the message
--
-- Returns
--   OK                per lock 1 done, 0 lost, 3 session lost
--   SESSION_NOT_SUPPORTED
--   ENTITY_NOT_FOUND
-- Cost: O(locks log N)
--@include base/now_ms
--@include base/text
--@include entity/touch
--@include session/resolve_tokens
--@include base/in_pieces
--@include session/session_lock_member
--@include lock/position_of_lock
--@include log/forget_changes
--@include log/delete_own
--@include wake/wake_holder
local entity, log, locks, deliveries, expiry, deferred = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local side = { log = log, modified = KEYS[7] }
local queue = { now = now_ms(ARGV[1]), session_locks = KEYS[8], session_tokens = KEYS[9], session_waiting = KEYS[10] }

local values = redis.call("HMGET", entity, "kind", "requires_session")
if not values[1] or values[1] == "topic" then
  return { "ENTITY_NOT_FOUND" }
end
if values[2] ~= "1" then
  return { "SESSION_NOT_SUPPORTED" }
end

-- As in lib/base/check_key_types, of what is kept beside the log: nearly always nothing.
local beside = redis.call("EXISTS", deliveries, expiry, deferred, side.modified) > 0
if beside then
  redis.call("ZCARD", expiry)
  redis.call("ZCARD", deferred)
  redis.call("HLEN", deliveries)
  redis.call("HLEN", side.modified)
end
redis.call("XLEN", log)
redis.call("HLEN", queue.session_waiting)

local tokens, seen = {}, {}
for i = 2, #ARGV, 3 do
  if not seen[ARGV[i]] then
    seen[ARGV[i]], tokens[#tokens + 1] = true, ARGV[i]
  end
end
local held = resolve_tokens(queue, tokens)

-- kept are the locks of all messages whose session is held, in the form in which they are kept.
local kept, places = {}, {}
for i = 2, #ARGV, 3 do
  local holder = held[ARGV[i]]
  if holder then
    kept[#kept + 1], places[#places + 1] = session_lock_member(holder.session, ARGV[i + 1]), i
  end
end
local is_locked, at = {}, 0
in_pieces(kept, function(...)
  for _, score in ipairs(redis.call("ZMSCORE", locks, ...)) do
    at = at + 1
    if score then
      is_locked[places[at]] = kept[at]
    end
  end
end)

touch(entity, queue.now)
-- One that is named twice ends once.
local ids, over = {}, {}
for i = 2, #ARGV, 3 do
  local lock = is_locked[i]
  if lock and not over[lock] then
    over[lock], ids[#ids + 1] = ARGV[i + 2], ARGV[i + 2]
  end
end
local bytes, wrong = 0, nil
if #ids > 0 then
  bytes, wrong = delete_own(side, ids)
end

local results, ended, positions, woken = { "OK" }, {}, {}, {}
for i = 2, #ARGV, 3 do
  local holder, lock = held[ARGV[i]], is_locked[i]
  local done = holder and 0 or 3
  local id = lock and over[lock]
  if id and not (wrong and wrong[id]) then
    done, over[lock], woken[holder.session] = 1, nil, true
    ended[#ended + 1], positions[#positions + 1] = lock, position_of_lock(ARGV[i + 1])
  end
  results[#results + 1] = done
end
if #ended > 0 then
  redis.call("ZREM", locks, unpack(ended))
  if beside then
    for _, position in ipairs(positions) do
      bytes = bytes + forget_changes(side, position)
    end
    redis.call("HDEL", deliveries, unpack(positions))
    redis.call("ZREM", expiry, unpack(positions))
    redis.call("ZREM", deferred, unpack(positions))
  end
  redis.call("HINCRBY", entity, "bytes", text(-bytes))
end
for session in pairs(woken) do
  wake_holder(queue, session) -- one more may be in flight
end
return results
