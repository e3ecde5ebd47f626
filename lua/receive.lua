-- receive: lock available messages and hand them out, what was delivered before first (RECV-2, RECV-8, RECV-9, LOCK-1,
-- TTL-8). It gives positions only: the caller reads the messages it now holds.
-- Reads: all.  Writes: all.
-- Flags: allow-oom
--
-- KEYS[1..36] queue  all keys of the queue, in the order of lib/open_queue.lua
-- ARGV[1] now             int     0 = server time
-- ARGV[2] sub             str     "" or "dead_": which of the two queues is the source
-- ARGV[3] limit           int     most messages to hand out
-- ARGV[4] max_bytes       int     about how many bytes they may be
-- ARGV[5] nonce           str     what makes these locks different from all others
-- ARGV[6] register_below  int     put the sidecar on the waiting list if fewer messages than this are handed out
-- ARGV[7] sidecar         str     its name there
--
-- Returns
--   OK                news recheck_ms left locked_until_ms positions deliveries changes spans
--                     recheck_ms: when to look again if nobody wakes the caller; left: 1 = there may be more at once;
--                     positions were delivered before, with failed deliveries of each; spans: first and last position, in
--                     turn, of what was never delivered before; changes: of both in this order, or none at all
--   ENTITY_NOT_FOUND
--   ENTITY_DISABLED   status
--   FORWARDS_ALL      path        the queue forwards all it gets to there (FWD-2)
--   SESSION_REQUIRED  this side of the queue has sessions: see receive_in_sessions
-- Cost: O(messages handed out + slice of what is due)
--@include now_ms
--@include text
--@include open_source
--@include close_queue
--@include answer_limit
--@include forwards_on
--@include take_available
--@include lock_positions
--@include available
--@include recheck_ms
local now, sub, limit, max_bytes = now_ms(ARGV[1]), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local nonce, register_below, sidecar = ":" .. ARGV[5], tonumber(ARGV[6]), ARGV[7]

local queue, side, refusal = open_source(KEYS, now, sub, function(found, wanted)
  return wanted.by_session and { "SESSION_REQUIRED" } or forwards_on(found, wanted)
end)
if not queue then
  return refusal
end
limit = answer_limit(queue, side, limit, max_bytes)
local old, new, spans, went_on = take_available(queue, side, limit)
local deliveries, changes = {}, {}
if #old > 0 then
  deliveries = redis.call("HMGET", side.deliveries, unpack(old))
end
local positions = #old > 0 and { unpack(old) } or {}
for i, position in ipairs(new) do
  positions[#old + i] = position
end
if #positions > 0 and redis.call("EXISTS", side.modified) == 1 then
  changes = redis.call("HMGET", side.modified, unpack(positions))
end
local locked_until = lock_positions(queue, side, positions, nonce)

local still = available(side)
if #positions < register_below then
  redis.call("ZADD", side.waiting, "NX", now, sidecar)
end
if still > 0 and went_on then
  side.came = still
end
local due = queue.alarm > 0 and queue.alarm <= now
local left = (due or (still > 0 and went_on)) and 1 or 0
local news = close_queue(queue)
return { "OK", news, recheck_ms(queue), left, locked_until, old, deliveries, changes, spans }
