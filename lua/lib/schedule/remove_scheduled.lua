-- remove_scheduled removes a scheduled message, named by its member of due, and frees its bytes. Returns false
-- when it is not there. With forget, and if the queue has ForgetOnCancel, its message id may be used again at once
-- (DUP-6): call open_history first.
--@include schedule/scheduled_at
--@include duplicate/history_key
--@include session/session_of
--@include session/session_member
--@include session/touch_session
--@include schedule/scheduled_id
--@include entity/note_orphan
local function remove_scheduled(queue, member, forget)
  local number = string.match(member, "[1-9]%d*$")
  local entry = scheduled_at(queue.scheduled, number)
  redis.call("ZREM", queue.due, member)
  if not entry then
    note_orphan(queue, number)
    return false
  end
  local id, partition = entry[2][4], entry[2][6]
  redis.call("XDEL", queue.scheduled, entry[1])
  redis.call("ZREM", queue.scheduled_ids, scheduled_id(id, member))
  if queue.has_sessions then
    local session = session_of(entry)
    redis.call("ZREM", queue.by_session, session_member(session, "s", number))
    touch_session(queue, session)
  end
  redis.call("HINCRBY", queue.entity, "bytes", "-" .. string.match(entry[1], "%d+$"))
  if forget and queue.deduplicates and redis.call("HGET", queue.entity, "forget_on_cancel") == "1" then
    local key = history_key(queue.partitioned, id, partition)
    if string.match(redis.call("HGET", queue.history, key) or "", "%d+$") == number then
      redis.call("HDEL", queue.history, key)
      redis.call("ZREM", queue.history_times, key)
    end
  end
  return true
end
