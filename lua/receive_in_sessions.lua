-- receive_in_sessions: lock messages of held sessions and hand them out, each session's in order (SESS-25 to SESS-28). Several
-- calls ride in one.
-- Reads: all.  Writes: all.
-- Flags: allow-oom
--
-- KEYS[1..36] queue  all keys of the queue, in the order of lib/open_queue.lua
-- ARGV[1] now        int  0 = server time
-- ARGV[2] max_bytes  int  about how many bytes the messages of one session may be
-- ARGV[3] nonce      str  what makes these locks different from all others
-- ARGV[4] sidecar    str  where a holder waits for more
-- ARGV[5..] token limit register ...  per call: the session's token, most messages, and whether the holder waits: 0 = no,
--           1 = if it gets nothing, 2 = anyway
--
-- Returns
--   OK                news recheck_ms deliveries changes, then per call
--                       "<left> <locked_until_ms> <position> ..."  left: see receive
--                       SESSION_LOCK_LOST
--                     deliveries, changes: of the messages of all calls, or none at all when no message of the queue has any
--   SESSION_NOT_SUPPORTED
--   ENTITY_NOT_FOUND
--   ENTITY_DISABLED   status
-- Cost: O(calls log N + messages handed out + slice of what is due)
--@include now_ms
--@include text
--@include open_source
--@include close_queue
--@include answer_limit
--@include held_sessions
--@include receivable
--@include in_flight
--@include in_pieces
--@include session_record
--@include session_lock
--@include hold_expiry
--@include entry_at
--@include expire_entry
--@include touch_session
--@include recheck_ms
--@include is_behind
local now, max_bytes, nonce, sidecar = now_ms(ARGV[1]), tonumber(ARGV[2]), ":" .. ARGV[3], ARGV[4]

local queue, main, refusal = open_source(KEYS, now, "", function(found)
  return not found.has_sessions and { "SESSION_NOT_SUPPORTED" }
end)
if not queue then
  return refusal
end
local tokens = {}
for i = 5, #ARGV, 3 do
  tokens[#tokens + 1] = ARGV[i]
end
local held = held_sessions(queue, tokens)
local behind = is_behind(queue)
local most = answer_limit(queue, main, 1000, max_bytes)
local any_expiry = redis.call("EXISTS", main.expiry) == 1
local any_deliveries, any_changes = redis.call("EXISTS", main.deliveries) == 1, redis.call("EXISTS", main.modified) == 1

-- What is taken from all sessions changes hands at once, but before the same session is looked at again.
local taken, locks, seen = {}, {}, {}
local function hand_over()
  in_pieces(taken, function(...) redis.call("ZREM", queue.by_session, ...) end)
  in_pieces(locks, function(...) redis.call("ZADD", main.locks, ...) end)
  taken, locks, seen = {}, {}, {}
end

local function expire(session, over)
  hand_over()
  touch_session(queue, session)
  for _, position in ipairs(over) do
    local entry = entry_at(main.log, position)
    if entry then
      expire_entry(queue, main, entry)
    end
  end
end

-- take gives the positions of the next messages of a session, at most limit, and whether the caller is to look again at once.
local function take(session, limit)
  if limit < 1 or (queue.any_blocked and session_record(queue, session).blocked ~= "") then
    return {}, false
  end
  if behind then
    return {}, true
  end
  local positions, over = {}, {}
  for i, member in ipairs(receivable(queue, session, limit)) do
    positions[i], taken[#taken + 1] = text(string.sub(member, -16)), member
  end
  if any_expiry then
    positions, over = hold_expiry(queue, main, positions)
  end
  for _, position in ipairs(positions) do
    locks[#locks + 1], locks[#locks + 2] = 0, session_lock(session, position .. nonce)
  end
  if #over > 0 then
    expire(session, over)
  end
  return positions, #over > 0
end

local results, all = {}, {}
for i = 5, #ARGV, 3 do
  local holder, limit, register = held[ARGV[i]], math.min(most, tonumber(ARGV[i + 1])), ARGV[i + 2]
  local session = holder and holder.session
  if not session then
    results[#results + 1] = "SESSION_LOCK_LOST"
  else
    if seen[session] then
      hand_over()
    end
    seen[session] = true
    local positions, expired = take(session, math.min(limit, queue.in_flight - in_flight(queue, session)))
    if register == "2" or (register == "1" and #positions == 0) then
      redis.call("HSET", queue.session_waiting, session, sidecar .. ":" .. ARGV[i])
    end
    local row = { (expired or #positions == limit) and "1" or "0", text(holder.ends) }
    for n, position in ipairs(positions) do
      row[n + 2], all[#all + 1] = position, position
    end
    results[#results + 1] = table.concat(row, " ")
  end
end
hand_over()
local news = close_queue(queue)
local deliveries, changes = {}, {}
if any_deliveries and #all > 0 then
  deliveries = redis.call("HMGET", main.deliveries, unpack(all))
end
if any_changes and #all > 0 then
  changes = redis.call("HMGET", main.modified, unpack(all))
end
return { "OK", news, recheck_ms(queue), deliveries, changes, unpack(results) }
