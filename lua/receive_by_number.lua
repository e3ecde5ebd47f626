-- receive_by_number: lock deferred (DEFER-3) or available (PURGE-9) messages with given sequence numbers, all or none. What
-- is past its time is expired instead (TTL-8, TTL-18).
-- Reads: all.  Writes: all.
-- Flags: allow-oom
--
-- KEYS[1..36] queue  all keys of the queue, in the order of lib/open_queue.lua
-- ARGV[1] now         int     0 = server time
-- ARGV[2] sub         str     "" or "dead_": which of the two queues is the source
-- ARGV[3] state       str     deferred or active
-- ARGV[4] nonce       str     what makes these locks different from all others
-- ARGV[5] token       str     of the session they must be in, "" on a source without sessions
-- ARGV[6..] number    int     at most 250, each once
--
-- Returns
--   OK                 news locked_until_ms positions deliveries changes
--   MESSAGE_NOT_FOUND  news, then the numbers that cannot be had
--   ENTITY_NOT_FOUND
--   ENTITY_DISABLED    status
--   FORWARDS_ALL       path    the queue forwards all it gets to there (FWD-2)
--   SESSION_REQUIRED
--   SESSION_NOT_SUPPORTED
--   SESSION_LOCK_LOST
--   INVALID_OPERATION  on a side with sessions only deferred messages can be had, or their order would break (PURGE-9)
-- Cost: O(numbers log N + slice of what is due)
--@include now_ms
--@include rest
--@include open_source
--@include close_queue
--@include find_numbers
--@include take_unlocked
--@include lock_positions
--@include lock_in_session
--@include wrong_kind
--@include forwards_on
--@include held_session
local now, sub, deferred, nonce = now_ms(ARGV[1]), ARGV[2], ARGV[3] == "deferred", ":" .. ARGV[4]
local token, numbers = ARGV[5], rest(ARGV, 6)

local session, ends
local queue, side, refusal = open_source(KEYS, now, sub, function(queue, side)
  if side.by_session and not deferred then
    return { "INVALID_OPERATION" }
  end
  local refusal = forwards_on(queue, side)
  if refusal then
    return refusal
  end
  local wrong = wrong_kind(side, token)
  if not wrong and side.by_session then
    session, ends = held_session(queue, token)
    wrong = not session and "SESSION_LOCK_LOST"
  end
  return wrong and { wrong }
end)
if not queue then
  return refusal
end
local positions, expiries, missing = find_numbers(queue, side, numbers, deferred, session)
if #missing > 0 then
  return { "MESSAGE_NOT_FOUND", close_queue(queue), unpack(missing) }
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
  or lock_positions(queue, side, positions, nonce)
local deliveries = redis.call("HMGET", side.deliveries, unpack(positions))
local changes = redis.call("HMGET", side.modified, unpack(positions))
return { "OK", close_queue(queue), locked_until, positions, deliveries, changes }
