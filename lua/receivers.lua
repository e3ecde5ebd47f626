-- receivers: read who receives from a queue or subscription (CNT-6), after doing what is due.
-- Reads: all.  Writes: what is due.
-- Flags: allow-oom
--
-- KEYS[1..41] queue  all keys of the queue, in the order of lib/entity/open_queue.lua
-- ARGV[1] now    int  0 = server time
-- ARGV[2] limit  int  most sidecars and most sessions of each kind, at most 100
--
-- Returns
--   OK                notifications first_lock_ms last_lock_ms, then three lists: waiting held ready
--                     first_lock_ms, last_lock_ms: ends of the locks of messages, "0" = none, or those of sessions
--                     waiting: name and since_ms of a sidecar in turn
--                     held: session token locked_until_ms available in turn, those whose lock ends first
--                     ready: session since_ms available in turn, those that have been ready longest
--   ENTITY_NOT_FOUND
-- Cost: O(limit log N + slice of what is due)
--@include base/now_ms
--@include base/text
--@include entity/open_queue
--@include due/clear_due
--@include entity/close_queue
--@include session/session_record
--@include session/session_member
local now, limit = now_ms(ARGV[1]), tonumber(ARGV[2])

local queue = open_queue(KEYS, now)
if not queue then
  return { "ENTITY_NOT_FOUND" }
end
clear_due(queue)
local notifications = close_queue(queue)
local main = queue.main

-- The ends of the locks of messages that hold. Those that a transfer has set aside are not locks of receivers.
local from, to = "(" .. text(now), "(253402300799000"

local function first_lock()
  local first
  for _, key in ipairs({ main.locks, main.run_locks }) do
    local ends = tonumber(redis.call("ZRANGEBYSCORE", key, from, to, "WITHSCORES", "LIMIT", 0, 1)[2])
    first = ends and math.min(first or ends, ends) or first
  end
  return text(first or 0)
end

local function last_lock()
  local last = 0
  for _, key in ipairs({ main.locks, main.run_locks }) do
    local ends = tonumber(redis.call("ZREVRANGEBYSCORE", key, to, from, "WITHSCORES", "LIMIT", 0, 1)[2])
    last = math.max(last, ends or 0)
  end
  return text(last)
end

local function available(session)
  local count = 0
  for _, letter in ipairs({ "a", "w", "x" }) do
    local from = session_member(session, letter)
    count = count + redis.call("ZLEXCOUNT", queue.by_session, "[" .. from, "(" .. from .. ":")
  end
  return count
end

local waiting = redis.call("ZRANGEBYSCORE", main.waiting, now - 20000, "+inf", "WITHSCORES", "LIMIT", 0, limit)
local held, ready = {}, {}
if not queue.has_sessions then
  return { "OK", notifications, first_lock(), last_lock(), waiting, held, ready }
end
local sessions = redis.call("ZRANGEBYSCORE", queue.session_locks, from, "+inf", "WITHSCORES", "LIMIT", 0, limit)
for i = 1, #sessions, 2 do
  local session = sessions[i]
  held[#held + 1], held[#held + 2], held[#held + 3], held[#held + 4] =
    session, session_record(queue, session).token, sessions[i + 1], available(session)
end
sessions = redis.call("ZRANGE", queue.ready_sessions, 0, limit - 1, "WITHSCORES")
for i = 1, #sessions, 2 do
  ready[#ready + 1], ready[#ready + 2], ready[#ready + 3] = sessions[i], sessions[i + 1], available(sessions[i])
end
return { "OK", notifications, "0", "0", waiting, held, ready }
