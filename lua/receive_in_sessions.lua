-- receive_in_sessions: lock messages of held sessions and hand them out, each session's in order (SESS-25 to SESS-28).
-- Several calls share one script.
-- Reads: all.  Writes: all.
-- Flags: allow-oom
--
-- KEYS[1..39] queue  all keys of the queue, in the order of lib/entity/open_queue.lua
-- ARGV[1] now        int  0 = server time
-- ARGV[2] most_bytes int  about how many bytes the messages of all sessions together may be
-- ARGV[3] nonce      str  what makes these locks different from all others
-- ARGV[4] sidecar    str  where a holder waits for more
-- ARGV[5..] token limit left register ...  per call: the session's token, most messages, most bytes, with "+" before
--                                          them when the call has messages already, and whether the holder waits: 0 =
--                                          no, 1 = if it gets nothing, 2 = anyway
--
-- Returns
--   OK                notifications recheck_ms deliveries changes, then per call
--                       "<left> <locked_until_ms> <position> ..."  left: 1 = there may be more at once that fits
--                       SESSION_LOCK_LOST
--                     deliveries, changes: of the messages of all calls, as lib/answer/values_of.lua
--   SESSION_NOT_SUPPORTED
--   ENTITY_NOT_FOUND
--   ENTITY_DISABLED   status
-- Cost: O(calls log N + messages handed out + slice of what is due), and most_bytes are read when messages may be too
-- large for one answer
--@include base/now_ms
--@include base/text
--@include entity/open_source
--@include entity/close_queue
--@include answer/fit_members
--@include log/has_changes
--@include answer/values_of
--@include session/resolve_tokens
--@include session/receivable
--@include session/count_in_flight
--@include base/in_pieces
--@include session/session_record
--@include session/session_lock_member
--@include lock/hold_expiry
--@include log/entry_at
--@include expiry/expire_with_session
--@include session/touch_session
--@include wake/recheck_ms
--@include expiry/is_behind
local now, most_bytes, nonce, sidecar = now_ms(ARGV[1]), tonumber(ARGV[2]), ":" .. ARGV[3], ARGV[4]

local queue, main, refusal = open_source(KEYS, now, "", function(queue)
  return not queue.has_sessions and { "SESSION_NOT_SUPPORTED" }
end)
if not queue then
  return refusal
end
local tokens = {}
for i = 5, #ARGV, 4 do
  tokens[#tokens + 1] = ARGV[i]
end
local held = resolve_tokens(queue, tokens)
local behind = is_behind(queue)
local any_expiry = redis.call("EXISTS", main.expiry) == 1
local any_deliveries = redis.call("EXISTS", main.deliveries) == 1

-- What is taken from all sessions changes hands at once, but before the same session is looked at again.
local taken, locks, seen, total = {}, {}, {}, { left = most_bytes, is_empty = true }
local function hand_over()
  in_pieces(taken, function(...) redis.call("ZREM", queue.by_session, ...) end)
  in_pieces(locks, function(...) redis.call("ZADD", main.locks, ...) end)
  taken, locks, seen = {}, {}, {}
end

local function expire(session, over)
  hand_over()
  touch_session(queue, session)
  for _, position in ipairs(over) do
    local entry = entry_at(main, position)
    if entry then
      expire_with_session(queue, main, entry)
    end
  end
end

-- take returns the positions of the next messages of a session for a call, and whether there may be more at once.
local function take(session, call)
  local limit = math.min(call.limit, queue.in_flight - count_in_flight(queue, session))
  if limit < 1 or (queue.any_blocked and session_record(queue, session).blocked ~= "") then
    return {}, false
  end
  if behind or queue.expiring then
    return {}, true
  end
  local positions, over, left_out = {}, {}, nil
  local members = receivable(queue, session, limit)
  if #members > 0 then
    members, left_out = fit_members(queue, members, call, total)
  end
  for i, member in ipairs(members) do
    positions[i], taken[#taken + 1] = text(string.sub(member, -16)), member
  end
  if any_expiry then
    positions, over = hold_expiry(queue, main, positions)
  end
  for _, position in ipairs(positions) do
    locks[#locks + 1], locks[#locks + 2] = 0, session_lock_member(session, position .. nonce)
  end
  if #over > 0 then
    expire(session, over)
  end
  if left_out == "full" and (#positions > 0 or #over == 0) then
    return positions, false
  end
  return positions, #over > 0 or left_out == "later" or #positions == call.limit
end

local results, all = {}, {}
for i = 5, #ARGV, 4 do
  local holder, bytes, register = held[ARGV[i]], ARGV[i + 2], ARGV[i + 3]
  local call = { limit = tonumber(ARGV[i + 1]), left = tonumber(bytes), is_empty = string.byte(bytes) ~= 43 }
  local session = holder and holder.session
  if not session then
    results[#results + 1] = "SESSION_LOCK_LOST"
  else
    if seen[session] then
      hand_over()
    end
    seen[session] = true
    local positions, left = take(session, call)
    if register == "2" or (register == "1" and #positions == 0) then
      redis.call("HSET", queue.session_waiting, session, sidecar .. ":" .. ARGV[i])
    end
    local row = { left and "1" or "0", text(holder.ends) }
    for n, position in ipairs(positions) do
      row[n + 2], all[#all + 1] = position, position
    end
    results[#results + 1] = table.concat(row, " ")
  end
end
hand_over()
local notifications = close_queue(queue)
local deliveries = any_deliveries and values_of(main.deliveries, all) or {}
local changes = has_changes(main) and values_of(main.modified, all) or {}
return { "OK", notifications, recheck_ms(queue), deliveries, changes, unpack(results) }
