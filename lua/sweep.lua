-- sweep: do what time has made due on an entity, for whoever looks after it while nobody else does (TTL-20, SCHED-6). Of a topic it
-- does not activate the messages, and it forwards none.
-- Reads: all.  Writes: what is due.
-- Flags: allow-oom
--
-- KEYS[1..36] queue  all keys of the queue, subscription or topic, in the order of lib/open_queue.lua
-- ARGV[1] now   int  0 = server time
-- ARGV[2] lazy  int  1: leave messages whose time is over until somebody looks (TTL-20)
--
-- Returns
--   OK                news alarm after_ms is_topic is_unused forwards
--                     news: see lib/close_queue; alarm: the next instant at which something becomes due, 0 = never; after_ms: until then,
--                     0 = at once, on a topic by activate; is_unused: 1 = nobody has used it for as long as AutoDeleteOnIdle says, as far
--                     as can be seen from here: it is to be removed, see lib/unused_at; forwards: letters of the sides that have something
--                     to forward now, m = main, d = dead
--   ENTITY_NOT_FOUND
-- Cost: O(slice of what is due)
--@include now_ms
--@include text
--@include open_queue
--@include clear_due
--@include close_queue
--@include next_alarm
--@include unused_at
--@include to_forward
local now = now_ms(ARGV[1])

local queue = open_queue(KEYS, now, true)
if not queue then
  return { "ENTITY_NOT_FOUND" }
end
queue.lazy = ARGV[2] == "1"
clear_due(queue)
local news = close_queue(queue)
local alarm = queue.lazy and next_alarm(queue, true) or queue.alarm
local unused = alarm > 0 and alarm <= now
  and unused_at(queue.entity, queue.due, { queue.main.locks, queue.dead.locks, queue.session_locks }, queue.dead.log, now)
local is_unused = unused and unused <= now
return {
  "OK", news, text(alarm), text(math.max(0, alarm - now)), queue.is_topic and 1 or 0, is_unused and 1 or 0, to_forward(queue),
}
