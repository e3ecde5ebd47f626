-- clear_due does what is due on a queue, in a bounded slice: locks and delays that ended (LOCK-6, SETTLE-11), messages
-- that expired (TTL-11, TTL-19), messages to activate (SCHED-3). alarm_ms is never later than the first of these, so
-- most calls cost one comparison. Every script on a queue does this first: only promptness depends on a sweeper. The
-- messages of a topic are activated by the store, which knows its rules: see activate.
--@include due/clear_side
--@include schedule/activate_due
--@include duplicate/forget_old_keys
--@include session/forget_states
--@include session/save_sessions
--@include due/next_alarm
--@include entity/touch_at
--@include base/text
local function clear_due(queue)
  if queue.alarm == 0 or queue.now < queue.alarm then
    return
  end
  queue.slice_bytes = 4194304 -- one call copies no more, whatever the size of the messages
  if not queue.is_topic then
    clear_side(queue, queue.main)
    activate_due(queue)
    clear_side(queue, queue.dead)
  end
  if queue.used then
    touch_at(queue.entity, queue.used)
  end
  forget_old_keys(queue, 1000)
  if queue.has_sessions then -- the caller sees the sessions as they are now
    queue.main.newly_available = queue.main.newly_available + save_sessions(queue)
    forget_states(queue)
    queue.main.newly_available = queue.main.newly_available + save_sessions(queue)
  end
  queue.alarm = next_alarm(queue, false)
  if queue.alarm > 0 then
    redis.call("HSET", queue.entity, "alarm_ms", text(queue.alarm))
  else
    redis.call("HDEL", queue.entity, "alarm_ms")
  end
end
