-- reactivate: make deferred messages available at their old places, all or none (DEFER-8).
-- Reads: all.  Writes: all.
-- Flags: allow-oom
--
-- KEYS[1..41] queue  all keys of the queue, in the order of lib/entity/open_queue.lua
-- ARGV[1] now       int     0 = server time
-- ARGV[2] sub       str     "" or "dead_": which of the two queues is the source
-- ARGV[3] token     str     of the session they must be in, "" = any
-- ARGV[4..] number  int     at most 250, each once
--
-- Returns
--   OK                 notifications
--   MESSAGE_NOT_FOUND  notifications, then the numbers that were not found
--   ENTITY_NOT_FOUND
--   ENTITY_DISABLED    status
--   SESSION_NOT_SUPPORTED
--   SESSION_LOCK_LOST
-- Cost: O(numbers log N + slice of what is due)
--@include base/now_ms
--@include base/slice
--@include session/open_scope
--@include entity/close_queue
--@include log/find_by_number
--@include due/expect
--@include session/session_of
--@include session/session_member
--@include log/entry_at
--@include session/put_in_session
--@include session/touch_session
local now, sub, token = now_ms(ARGV[1]), ARGV[2], ARGV[3]
local numbers = slice(ARGV, 4)

local queue, side, session, refusal = open_scope(KEYS, now, sub, token, "")
if not queue then
  return refusal
end
local positions, expiries, missing = find_by_number(queue, side, numbers, true, session)
if #missing > 0 then
  return { "MESSAGE_NOT_FOUND", close_queue(queue), unpack(missing) }
end
for i, position in ipairs(positions) do
  redis.call("ZREM", side.deferred, position)
  if side.by_session then
    local its = session_of(entry_at(side, position))
    redis.call("ZREM", side.by_session, session_member(its, "d", position))
    put_in_session(queue, its, "a", position)
    touch_session(queue, its)
  else
    redis.call("ZADD", side.ready, position, position)
    side.newly_available = side.newly_available + 1
  end
  if expiries[i] > 0 then
    redis.call("ZADD", side.expiry, expiries[i], position)
    expect(queue, expiries[i])
  end
end
return { "OK", close_queue(queue) }
