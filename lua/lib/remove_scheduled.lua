-- remove_scheduled removes a scheduled message, named by its member of due, and gives its bytes back. With forget, and if
-- the queue has ForgetOnCancel, its message id may be used again at once (DUP-6): open_history must have been called.
--@include entry_at
--@include history_key
--@include text
--@include session_of
--@include session_member
--@include touch_session
local function remove_scheduled(queue, member, forget)
  local number = string.match(member, "[1-9]%d*$")
  local entry = entry_at(queue.scheduled, number)
  redis.call("ZREM", queue.due, member)
  if not entry then
    return
  end
  local id, partition = entry[2][4], entry[2][6]
  redis.call("XDEL", queue.scheduled, entry[1])
  redis.call("ZREM", queue.scheduled_ids, id .. "\0" .. member)
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
end
