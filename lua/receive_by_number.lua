-- receive_by_number: lock deferred (DEFER-3) or available (PURGE-9) messages with given sequence numbers, all or none.
-- Expired ones are ended instead (TTL-8, TTL-18).
-- Reads: all.  Writes: all.
-- Flags: allow-oom
--
-- KEYS[1..41] queue  all keys of the queue, in the order of lib/entity/open_queue.lua
-- ARGV[1] now         int     0 = server time
-- ARGV[2] sub         str     "" or "dead_": which of the two queues is the source
-- ARGV[3] state       str     deferred or active
-- ARGV[4] nonce       str     what makes these locks different from all others
-- ARGV[5] token       str     of the session they must be in, "" on a source without sessions
-- ARGV[6] max_bytes   int     most bytes, but always one message
-- ARGV[7..] number    int     at most 250, each once
--
-- Returns
--   OK                 notifications locked_until_ms positions deliveries changes  the last two as
--                      lib/answer/values_of.lua
--   MESSAGE_NOT_FOUND  notifications, then the numbers that were not found
--   TOO_LARGE          notifications fitting     together they are more than max_bytes: only so many of the first would
--                                                be one answer
--   ENTITY_NOT_FOUND
--   ENTITY_DISABLED    status
--   FORWARDS_ALL       path    the queue forwards all it gets to there (FWD-2)
--   SESSION_REQUIRED
--   SESSION_NOT_SUPPORTED
--   SESSION_LOCK_LOST
--   INVALID_OPERATION  on a side with sessions only deferred messages can be had, or their order would break (PURGE-9)
-- Cost: O(numbers log N + slice of what is due)
--@include base/now_ms
--@include base/slice
--@include entity/open_source
--@include entity/close_queue
--@include log/find_by_number
--@include answer/is_heavy
--@include answer/share_out
--@include available/take_unlocked
--@include lock/lock_messages
--@include session/lock_in_session
--@include session/session_mismatch
--@include transfer/refuse_forwarding
--@include session/held_session
--@include answer/values_of
local now, sub, deferred, nonce = now_ms(ARGV[1]), ARGV[2], ARGV[3] == "deferred", ":" .. ARGV[4]
local token, max_bytes, numbers = ARGV[5], tonumber(ARGV[6]), slice(ARGV, 7)

local session, ends
local queue, side, refusal = open_source(KEYS, now, sub, function(queue, side)
  if side.by_session and not deferred then
    return { "INVALID_OPERATION" }
  end
  local refusal = refuse_forwarding(queue, side)
  if refusal then
    return refusal
  end
  local wrong = session_mismatch(side, token)
  if not wrong and side.by_session then
    session, ends = held_session(queue, token)
    wrong = not session and "SESSION_LOCK_LOST"
  end
  return wrong and { wrong }
end)
if not queue then
  return refusal
end
local positions, expiries, missing = find_by_number(queue, side, numbers, deferred, session)
if #missing > 0 then
  return { "MESSAGE_NOT_FOUND", close_queue(queue), unpack(missing) }
end
if #positions > 1 and is_heavy(queue, side, max_bytes / #positions) then
  local one, total = { limit = #positions, left = max_bytes, is_empty = true }, { left = max_bytes, is_empty = true }
  local _, _, fitting = share_out(side, positions, { one }, total, {})
  if fitting < #positions then
    return { "TOO_LARGE", close_queue(queue), fitting }
  end
end
for i, position in ipairs(positions) do
  take_unlocked(queue, side, position, session)
  if deferred then
    redis.call("ZADD", side.deferred, "-" .. position, position)
  end
  if expiries[i] > 0 then
    redis.call("ZADD", side.expiry, -expiries[i], position)
  end
end
local locked_until = session and lock_in_session(queue, session, ends, positions, nonce)
  or lock_messages(queue, side, positions, nonce)
local deliveries, changes = values_of(side.deliveries, positions), values_of(side.modified, positions)
return { "OK", close_queue(queue), locked_until, positions, deliveries, changes }
