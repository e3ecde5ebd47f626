-- drop_orphan forgets what is stored about a message that is not in the log, because another client changed keys
-- (docs/decisions/0013). session is where it was found, nil for none; scheduled reports whether it was a scheduled
-- message.
--@include session/session_member
--@include session/touch_session
--@include entity/note_orphan
local function drop_orphan(queue, side, position, session, scheduled)
  note_orphan(queue, position)
  if session then
    for _, letter in ipairs(scheduled and { "s" } or { "a", "w", "x", "d" }) do
      redis.call("ZREM", queue.by_session, session_member(session, letter, position))
    end
    touch_session(queue, session)
  end
  if scheduled then
    redis.call("ZREM", queue.due, string.format("%016d", position))
    return
  end
  redis.call("ZREM", side.ready, position)
  redis.call("ZREM", side.delayed, position)
  redis.call("ZREM", side.deferred, position)
  redis.call("ZREM", side.expiry, position)
  redis.call("HDEL", side.deliveries, position)
  redis.call("HDEL", side.modified, position)
  if side.numbers then
    redis.call("ZREM", side.numbers, position)
  end
end
