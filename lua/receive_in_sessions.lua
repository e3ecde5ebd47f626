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
--   OK                news recheck_ms, then one list per call, each one of
--                       OK left locked_until_ms positions deliveries changes   (left: see receive)
--                       SESSION_LOCK_LOST
--   SESSION_NOT_SUPPORTED
--   ENTITY_NOT_FOUND
--   ENTITY_DISABLED   status
-- Cost: O(calls log N + messages handed out + slice of what is due)
--@include now_ms
--@include text
--@include open_source
--@include close_queue
--@include answer_limit
--@include held_session
--@include receivable
--@include in_flight
--@include session_record
--@include hold_expiry
--@include lock_in_session
--@include entry_at
--@include expire_entry
--@include touch_session
--@include recheck_ms
local now, max_bytes, nonce, sidecar = now_ms(ARGV[1]), tonumber(ARGV[2]), ":" .. ARGV[3], ARGV[4]

local queue, main, refusal = open_source(KEYS, now, "", function(found)
  return not found.has_sessions and { "SESSION_NOT_SUPPORTED" }
end)
if not queue then
  return refusal
end
local any_changes = redis.call("EXISTS", main.modified) == 1

-- take takes the next messages of a session off by_session and locks those whose time is not over.
local function take(session, ends, limit)
  if limit < 1 or (queue.blocks_sessions and session_record(queue, session).blocked ~= "") then
    return {}, false
  end
  local members, positions = receivable(queue, session, limit), {}
  if #members == 0 then
    return positions, false
  end
  for i, member in ipairs(members) do
    positions[i] = text(tonumber(string.sub(member, -16)))
  end
  redis.call("ZREM", queue.by_session, unpack(members))
  local live, over = hold_expiry(queue, main, positions)
  for _, position in ipairs(over) do
    touch_session(queue, session)
    local entry = entry_at(main.log, position)
    if entry then
      expire_entry(queue, main, entry)
    end
  end
  lock_in_session(queue, session, ends, live, nonce)
  return live, #over > 0
end

local results = {}
for i = 5, #ARGV, 3 do
  local token, limit, register = ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
  local session, ends = held_session(queue, token)
  if not session then
    results[#results + 1] = { "SESSION_LOCK_LOST" }
  else
    limit = answer_limit(queue, main, limit, max_bytes)
    local room = queue.in_flight - in_flight(queue, session)
    local positions, expired = take(session, ends, math.min(limit, room))
    if register == 2 or (register == 1 and #positions == 0) then
      redis.call("HSET", queue.session_waiting, session, sidecar .. ":" .. token)
    end
    local deliveries, changes = {}, {}
    if #positions > 0 then
      deliveries = redis.call("HMGET", main.deliveries, unpack(positions))
      if any_changes then
        changes = redis.call("HMGET", main.modified, unpack(positions))
      end
    end
    local left = (expired or #positions == limit) and 1 or 0
    results[#results + 1] = { "OK", left, text(ends), positions, deliveries, changes }
  end
end
local news = close_queue(queue)
return { "OK", news, recheck_ms(queue), unpack(results) }
