-- reactivate: make deferred messages available at their old places, all or none (DEFER-8).
-- Reads: all.  Writes: all.
-- Flags: allow-oom
--
-- KEYS[1..36] queue  all keys of the queue, in the order of lib/open_queue.lua
-- ARGV[1] now       int     0 = server time
-- ARGV[2] sub       str     "" or "dead_": which of the two queues is the source
-- ARGV[3] token     str     of the session they must be in, "" = any
-- ARGV[4..] number  int     at most 250, each once
--
-- Returns
--   OK                 news
--   MESSAGE_NOT_FOUND  news, then the numbers that cannot be had
--   ENTITY_NOT_FOUND
--   ENTITY_DISABLED    status
--   SESSION_NOT_SUPPORTED
--   SESSION_LOCK_LOST
-- Cost: O(numbers log N + slice of what is due)
--@include now_ms
--@include rest
--@include open_source
--@include close_queue
--@include find_numbers
--@include expect
--@include scope
--@include session_of
--@include session_member
--@include entry_at
--@include put_in_session
--@include touch_session
local now, sub, token = now_ms(ARGV[1]), ARGV[2], ARGV[3]
local numbers = rest(ARGV, 4)

local session
local queue, side, refusal = open_source(KEYS, now, sub, function(queue, side)
  local wrong
  session, wrong = scope(queue, side, token, "")
  return wrong and { wrong }
end)
if not queue then
  return refusal
end
local positions, expiries, missing = find_numbers(queue, side, numbers, true, session)
if #missing > 0 then
  return { "MESSAGE_NOT_FOUND", close_queue(queue), unpack(missing) }
end
for i, position in ipairs(positions) do
  redis.call("ZREM", side.deferred, position)
  if side.by_session then
    local its = session_of(entry_at(side.log, position))
    redis.call("ZREM", side.by_session, session_member(its, "d", position))
    put_in_session(queue, its, "a", position)
    touch_session(queue, its)
  else
    redis.call("ZADD", side.ready, position, position)
    side.came = side.came + 1
  end
  if expiries[i] > 0 then
    redis.call("ZADD", side.expiry, expiries[i], position)
    expect(queue, expiries[i])
  end
end
return { "OK", close_queue(queue) }
