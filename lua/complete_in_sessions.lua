-- complete_in_sessions: remove messages of held sessions for good (SETTLE-3). Several sessions' ride in one.
-- Reads: entity, locks, session_locks, session_tokens.  Writes: entity, log, locks, deliveries, expiry, deferred, modified,
-- session_waiting.
-- Flags: allow-oom
--
-- KEYS[1] entity           hash    options and state of the queue
-- KEYS[2] log              stream  messages of the queue, id = <position>-<size>
-- KEYS[3] locks            zset    session_lock of what is handed out
-- KEYS[4] deliveries       hash    position -> failed deliveries
-- KEYS[5] expiry           zset    position by ExpiresAt (ms), with the sign turned while it is locked
-- KEYS[6] deferred         zset    position by itself, with the sign turned while it is locked
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
--@include now_ms
--@include text
--@include touch
--@include held_session
--@include session_lock
--@include lock_position
--@include forget_modified
--@include wake_holder
local entity, log, locks, deliveries, expiry, deferred = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local side = { modified = KEYS[7] }
local queue = { now = now_ms(ARGV[1]), session_locks = KEYS[8], session_tokens = KEYS[9], session_waiting = KEYS[10] }

local requires = redis.call("HMGET", entity, "status", "requires_session")
if not requires[1] then
  return { "ENTITY_NOT_FOUND" }
end
if requires[2] ~= "1" then
  return { "SESSION_NOT_SUPPORTED" }
end
touch(entity, queue.now)

local held = {} -- token -> its session, or false
local function session_held(token)
  if held[token] == nil then
    held[token] = held_session(queue, token) or false
  end
  return held[token]
end

local results, ids, positions, bytes, woken = { "OK" }, {}, {}, 0, {}
for i = 2, #ARGV, 3 do
  local session, lock, id = session_held(ARGV[i]), ARGV[i + 1], ARGV[i + 2]
  local done = session and redis.call("ZREM", locks, session_lock(session, lock)) or 3
  results[#results + 1] = done
  if done == 1 then
    ids[#ids + 1], positions[#positions + 1], woken[session] = id, lock_position(lock), true
    bytes = bytes + string.match(id, "%d+$")
  end
end
if #ids > 0 then
  redis.call("XDEL", log, unpack(ids))
  if redis.call("EXISTS", deliveries, expiry, deferred, side.modified) > 0 then
    for _, position in ipairs(positions) do
      bytes = bytes + forget_modified(side, position)
    end
    redis.call("HDEL", deliveries, unpack(positions))
    redis.call("ZREM", expiry, unpack(positions))
    redis.call("ZREM", deferred, unpack(positions))
  end
  redis.call("HINCRBY", entity, "bytes", text(-bytes))
end
for session in pairs(woken) do
  wake_holder(queue, session) -- there is room for one more in flight
end
return results
