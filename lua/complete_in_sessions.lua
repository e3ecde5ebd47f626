-- complete_in_sessions: complete messages of held sessions (SETTLE-3). It is turn for calls that only complete, which
-- need few of the keys.
-- Reads: entity, locks, session_locks, session_tokens.  Writes: entity, log, locks, deliveries, expiry, deferred,
-- modified, session_waiting.
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
-- ARGV[1] now              str     "<ms>", 0 = server time, or "<ms>;<level>": see lib/entity/lacks_fence.lua
-- ARGV[2..] token limit left register count ...  str  per call as in turn
--
-- Returns
--   OK                per call "<done> 0 0" as in turn, or SESSION_LOCK_LOST
--   SESSION_NOT_SUPPORTED  ""
--   ENTITY_NOT_FOUND
--   NEEDS_FENCE     level   the caller must wait for that durability; nothing was done
-- Cost: O(locks log N)
--@include base/now_ms
--@include entity/lacks_fence
--@include entity/touch
--@include session/read_turns
--@include session/resolve_tokens
--@include session/complete_held
local now, awaited = now_ms(ARGV[1])
local main = {
  log = KEYS[2], locks = KEYS[3], deliveries = KEYS[4], expiry = KEYS[5], deferred = KEYS[6], modified = KEYS[7],
}
local queue = {
  now = now, entity = KEYS[1], main = main, session_locks = KEYS[8], session_tokens = KEYS[9],
  session_waiting = KEYS[10],
}

local values = redis.call("HMGET", queue.entity, "kind", "requires_session")
if not values[1] or values[1] == "topic" or values[1] == "partitioned_queue" then
  return { "ENTITY_NOT_FOUND" }
end
local is_plain = not awaited and (values[1] == "queue" or values[1] == "subscription")
local refusal = not is_plain and lacks_fence(queue.entity, values[1], awaited)
if refusal then
  return refusal
end
if values[2] ~= "1" then
  return { "SESSION_NOT_SUPPORTED", "" }
end

-- As in lib/base/check_key_types, of what is kept beside the log: nearly always nothing.
if redis.call("EXISTS", main.deliveries, main.expiry, main.deferred, main.modified) > 0 then
  redis.call("ZCARD", main.expiry)
  redis.call("ZCARD", main.deferred)
  redis.call("HLEN", main.deliveries)
  redis.call("HLEN", main.modified)
end
redis.call("XLEN", main.log)
redis.call("ZCARD", main.locks)
redis.call("HLEN", queue.session_waiting)

local turns, tokens = read_turns(ARGV, 2)
local held = resolve_tokens(queue, tokens)
touch(queue.entity, queue.now)
complete_held(queue, held, turns, ARGV)
local rows = {}
for i, turn in ipairs(turns) do
  rows[i] = held[turn.token] and turn.done .. " 0 0" or "SESSION_LOCK_LOST"
end
return { "OK", unpack(rows) }
