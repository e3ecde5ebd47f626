-- source_runtime: count a queue or subscription (CNT-1, CNT-2, CNT-4) after doing what is due on it.
-- Reads: all.  Writes: what is due.
-- Flags: allow-oom
--
-- KEYS[1..41] queue       all keys of the queue, in the order of lib/entity/open_queue.lua
-- KEYS[42..82] transfers_queue  the same of its transfer dead-letter queue
-- ARGV[1] now  int  0 = server time
--
-- Returns
--   OK                notifications transfers_notifications active locked deferred delayed expired_pending scheduled
--                     dead set_aside transfers bytes dead_bytes state_bytes transfers_bytes oldest_enqueued_ms
--                     available_since_ms sessions ready_sessions locked_sessions blocked_sessions created_ms updated_ms
--                     accessed_ms sequence
--                     set_aside: messages of transfers under way, which no other number counts
--   ENTITY_NOT_FOUND
-- Cost: O(log N)
--@include base/now_ms
--@include base/text
--@include entity/open_queue
--@include due/clear_due
--@include entity/touch_at
--@include entity/close_queue
--@include lock/count_locked
--@include transfer/count_set_aside
--@include log/count_messages
--@include available/available_since
local now = now_ms(ARGV[1])

local queue = open_queue(KEYS, now)
if not queue then
  return { "ENTITY_NOT_FOUND" }
end
local transfers = open_queue({ unpack(KEYS, 42, 82) }, now)
local transfers_notifications, refused, refused_bytes = "0", 0, "0"
clear_due(queue)
local notifications = close_queue(queue)
if transfers then
  clear_due(transfers)
  if transfers.used then
    touch_at(queue.entity, transfers.used)
  end
  transfers_notifications = close_queue(transfers)
  refused = count_messages(transfers.dead)
  refused_bytes = redis.call("HGET", transfers.entity, "dead_bytes") or "0"
end
local main, dead = queue.main, queue.dead
local main_aside, dead_aside = count_set_aside(main), count_set_aside(dead)
local sizes = redis.call("HMGET", queue.entity, "bytes", "dead_bytes", "state_bytes", "created_ms", "updated_ms",
  "accessed_ms", "blocked_sessions")
local locked = main.by_session and redis.call("ZCARD", main.locks)
  or count_locked(main, now) - main_aside
local sessions, ready, held = 0, 0, 0
if queue.has_sessions then
  sessions = redis.call("HLEN", queue.sessions) - redis.call("ZCARD", queue.idle_sessions)
  ready, held = redis.call("ZCARD", queue.ready_sessions), redis.call("ZCARD", queue.session_locks)
end
local oldest = redis.call("XRANGE", main.log, "-", "+", "COUNT", 1)[1]
return {
  "OK", notifications, transfers_notifications, count_messages(main) - main_aside, locked,
  redis.call("ZCOUNT", main.deferred, "(0", "+inf"), redis.call("ZCARD", main.delayed),
  redis.call("ZCOUNT", main.expiry, "(0", now), redis.call("ZCARD", queue.due),
  count_messages(dead) - dead_aside, main_aside + dead_aside, refused,
  sizes[1] or "0", sizes[2] or "0", sizes[3] or "0", refused_bytes,
  oldest and string.match(oldest[2][1], "^%d+") or "0", available_since(queue), sessions, ready, held,
  sizes[7] or "0", sizes[4], sizes[5], sizes[6], text(main.sequence),
}
