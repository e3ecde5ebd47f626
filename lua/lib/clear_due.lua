-- clear_due does what time has made due on a queue, in a bounded slice: locks and delays that ended (LOCK-6,
-- SETTLE-11), lifetimes that are over (TTL-11, TTL-19), messages to be activated (SCHED-3). The field alarm_ms of the entity
-- is never later than the first of these instants, so that most calls cost one comparison. Every script that looks
-- at a queue does this first, so that nothing but promptness depends on a sweeper. The messages of a topic are activated by whoever
-- knows its rules: see activate.
--@include clear_side
--@include activate_due
--@include forget_old
--@include forget_states
--@include close_sessions
--@include next_alarm
--@include note_use
--@include text
local function clear_due(queue)
  if queue.alarm == 0 or queue.now < queue.alarm then
    return
  end
  queue.slice_bytes = 4194304 -- copied at most, so that one call stays short whatever the messages' size
  if not queue.is_topic then
    clear_side(queue, queue.main)
    activate_due(queue)
    clear_side(queue, queue.dead)
  end
  if queue.used then
    note_use(queue.entity, queue.used)
  end
  forget_old(queue, 200)
  if queue.has_sessions then -- whoever called wants to see the sessions as they are now
    queue.main.came = queue.main.came + close_sessions(queue)
    forget_states(queue)
    queue.main.came = queue.main.came + close_sessions(queue)
  end
  queue.alarm = next_alarm(queue, false)
  if queue.alarm > 0 then
    redis.call("HSET", queue.entity, "alarm_ms", text(queue.alarm))
  else
    redis.call("HDEL", queue.entity, "alarm_ms")
  end
end
