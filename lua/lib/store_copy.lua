-- store_copy stores one copy, whatever it needs, under the number that is target.sequence: behind the others of its subscription, or
-- among the dead letters, for the given reason or because the subscription has as many messages as it may (TOPIC-7). Returns how many bytes made
-- way for it.
--@include text
--@include shorter_ttl
--@include lifetime
--@include expect
--@include append_to_session
--@include bury_copy
--@include drop_oldest
local function store_copy(topic, target, copy, origin, why)
  local queue, number, dropped = target.queue, text(target.sequence), nil
  local times, expires = lifetime(topic.now, shorter_ttl(copy.ttl_ms, target.default_ttl_ms), copy.ends_ms)
  if queue then
    queue.main.sequence = target.sequence
  end
  if not why and target.makes_room and redis.call("XLEN", target.log) >= target.max_message_count then
    dropped = target.overflow == "DROP_OLDEST" and drop_oldest(queue)
    why = not dropped and {
      cause = "o", reason = "MaxMessageCountExceeded",
      description = "the subscription has as many messages as MaxMessageCount permits: " .. text(target.max_message_count),
    }
  end
  if why then
    bury_copy(queue, number, times, copy, origin, why)
    return 0
  end
  local holder = queue or target
  if expires then
    redis.call("ZADD", target.expiry, expires, number)
    expect(holder, tonumber(expires))
  end
  if target.has_sessions then
    append_to_session(holder, target.log, number, copy.size, times, copy.payload, copy.session, origin)
  else
    redis.call("XADD", target.log, number .. "-" .. copy.size, times, copy.payload, "e", origin)
    target.came = target.came + 1
  end
  target.added = target.added + copy.bytes
  return dropped or 0
end
