-- source_runtime: count a queue or subscription (CNT-1, CNT-2, CNT-4) after doing what is due on it.
-- Reads: all.  Writes: what is due.
-- Flags: allow-oom
--
-- KEYS[1..36] queue       all keys of the queue, in the order of lib/open_queue.lua
-- KEYS[37..72] transfers  the same of its transfer dead-letter queue
-- ARGV[1] now  int  0 = server time
--
-- Returns
--   OK                news transfers_news active locked deferred delayed expired_pending scheduled dead set_aside transfers bytes
--                     dead_bytes state_bytes transfers_bytes oldest_enqueued_ms sessions ready_sessions locked_sessions
--                     set_aside: messages of transfers under way, which no other number counts
--   ENTITY_NOT_FOUND
-- Cost: O(log N)
--@include now_ms
--@include text
--@include open_queue
--@include clear_due
--@include close_queue
--@include count_set_aside
local now = now_ms(ARGV[1])

local queue = open_queue(KEYS, now)
if not queue then
  return { "ENTITY_NOT_FOUND" }
end
clear_due(queue)
local news = close_queue(queue)
local transfers, transfers_news, refused, refused_bytes = open_queue({ unpack(KEYS, 37, 72) }, now), "0", 0, "0"
if transfers then
  clear_due(transfers)
  transfers_news = close_queue(transfers)
  refused, refused_bytes = redis.call("XLEN", transfers.dead.log), redis.call("HGET", transfers.entity, "dead_bytes") or "0"
end
local main, dead = queue.main, queue.dead
local main_aside, dead_aside = count_set_aside(main), count_set_aside(dead)
local sizes = redis.call("HMGET", queue.entity, "bytes", "dead_bytes", "state_bytes")
local locked = main.by_session and redis.call("ZCARD", main.locks) or redis.call("ZCOUNT", main.locks, "(" .. text(now), "+inf") - main_aside
local sessions, ready, held = 0, 0, 0
if queue.has_sessions then
  sessions = redis.call("HLEN", queue.sessions) - redis.call("ZCARD", queue.idle_sessions)
  ready, held = redis.call("ZCARD", queue.ready_sessions), redis.call("ZCARD", queue.session_locks)
end
local oldest = redis.call("XRANGE", main.log, "-", "+", "COUNT", 1)[1]
return {
  "OK", news, transfers_news, redis.call("XLEN", main.log) - main_aside, locked,
  redis.call("ZCOUNT", main.deferred, "(0", "+inf"), redis.call("ZCARD", main.delayed),
  redis.call("ZCOUNT", main.expiry, "(0", now), redis.call("ZCARD", queue.due),
  redis.call("XLEN", dead.log) - dead_aside, main_aside + dead_aside, refused,
  sizes[1] or "0", sizes[2] or "0", sizes[3] or "0", refused_bytes,
  oldest and string.match(oldest[2][1], "^%d+") or "0", sessions, ready, held,
}
