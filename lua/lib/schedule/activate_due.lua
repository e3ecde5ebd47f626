-- activate_due enqueues at most 100 scheduled messages that are due, as if they were sent now: last, with a new number
-- and a new lifetime (SCHED-3, SCHED-6, MSG-7, TTL-17).
--@include session/session_member
--@include session/touch_session
--@include schedule/scheduled_at
--@include intake/append_message
--@include session/session_of
--@include base/text
--@include due/note_held_until
--@include schedule/scheduled_id
--@include entity/note_orphan
local function activate_due(queue)
  local main = queue.main
  local before = main.sequence
  for _, member in ipairs(redis.call("ZRANGEBYSCORE", queue.due, "-inf", queue.now, "LIMIT", 0, 100)) do
    if queue.slice_bytes <= 0 then
      break
    end
    local entry = scheduled_at(queue.scheduled, string.match(member, "[1-9]%d*$"))
    redis.call("ZREM", queue.due, member)
    if entry then
      local size = string.match(entry[1], "%d+$")
      local session = main.by_session and session_of(entry)
      redis.call("XDEL", queue.scheduled, entry[1])
      redis.call("ZREM", queue.scheduled_ids, scheduled_id(entry[2][4], member))
      if session then
        redis.call("ZREM", main.by_session, session_member(session, "s", string.match(entry[1], "^%d+")))
      end
      append_message(queue, main, {
        size = size, payload = entry[2][2], ttl_ms = tonumber(string.match(entry[2][1], "%-?%d+$")), session = session,
      })
      if session then
        touch_session(queue, session)
      end
      queue.slice_bytes = queue.slice_bytes - size
    else
      note_orphan(queue, string.match(member, "[1-9]%d*$"))
    end
  end
  if main.sequence > before then
    redis.call("HSET", queue.entity, "sequence", text(main.sequence))
    note_held_until(queue, queue.now) -- until now it had scheduled messages (IDLE-2)
  end
end
