-- sweep: do what is due on an entity that no call looks at (TTL-20, SCHED-6). Of a topic it does not activate the
-- messages, and it forwards none.
-- Reads: all.  Writes: what is due.
-- Flags: allow-oom
--
-- KEYS[1..41] queue  all keys of the queue, subscription or topic, in the order of lib/entity/open_queue.lua
-- KEYS[42] suspended  hash  of a partition that a removal has suspended: see suspend
-- KEYS[43] parent     hash  of a transfer dead-letter queue the entity it belongs to, else KEYS[1]
-- ARGV[1] now   int  0 = server time
-- ARGV[2] lazy  int  1: leave expired messages until a call looks (TTL-20)
--
-- Returns
--   OK                notifications alarm after_ms is_topic is_unused forwards
--                     notifications: see lib/entity/close_queue; alarm: the next instant at which something becomes
--                     due, 0 = never; after_ms: until then, 0 = at once, on a topic by activate; is_unused: 1 = it was
--                     not used for AutoDeleteOnIdle, as far as can be seen from here: it is to be removed, see
--                     lib/entity/unused_at; forwards: letters of the sides that have something to forward now, m =
--                     main, d = dead
--   RECORD            alarm after_ms  of a queue with several partitions that has AutoDeleteOnIdle: by its record it is
--                     to be removed then, or a removal is to be completed or cancelled
--   SUSPENDED
--   ENTITY_NOT_FOUND
-- Cost: O(slice of what is due)
--@include base/now_ms
--@include base/text
--@include entity/open_queue
--@include due/clear_due
--@include entity/touch_at
--@include entity/close_queue
--@include due/next_alarm
--@include entity/unused_at
--@include transfer/sides_to_forward
local now = now_ms(ARGV[1])

local queue = open_queue(KEYS, now, true)
local suspended, parent = KEYS[42], KEYS[43]
if not queue then
  if redis.call("HLEN", suspended) > 0 then
    return { "SUSPENDED" }
  end
  local at = unused_at(KEYS[1], KEYS[24], {}, nil, now)
  if not at then
    return { "ENTITY_NOT_FOUND" }
  end
  at = redis.call("HEXISTS", KEYS[1], "removal") == 1 and now or at
  return { "RECORD", text(at), text(math.max(0, at - now)) }
end
local has_parent = redis.call("HLEN", parent) > 0
queue.lazy = ARGV[2] == "1"
clear_due(queue)
if queue.used and has_parent then
  touch_at(parent, queue.used)
end
local notifications = close_queue(queue)
local alarm = queue.lazy and next_alarm(queue, true) or queue.alarm
local unused = alarm > 0 and alarm <= now
  and unused_at(queue.entity, queue.due, { queue.main.locks, queue.dead.locks, queue.session_locks }, queue.dead.log,
    now)
local is_unused = unused and unused <= now
return {
  "OK", notifications, text(alarm), text(math.max(0, alarm - now)), queue.is_topic and 1 or 0, is_unused and 1 or 0,
  sides_to_forward(queue),
}
