-- store_special_copy stores one copy, whatever it needs: behind the others of its subscription, or among the dead
-- letters, for the given reason or because the subscription has as many messages as it may (TOPIC-7). Returns how many
-- bytes made way for it.
--@include base/text
--@include log/shorter_ttl
--@include log/lifetime
--@include log/count_messages
--@include intake/append_message
--@include dead_letter/dead_letter_incoming
--@include available/drop_oldest
local function store_special_copy(topic, target, copy, origin, why)
  local queue, dropped = target.queue, nil
  local ttl_ms = shorter_ttl(copy.ttl_ms, target.default_ttl_ms)
  if queue then
    queue.main.sequence = target.sequence + 1
  end
  if not why and target.makes_room and count_messages(queue.main) >= target.max_message_count then
    dropped = target.overflow == "DROP_OLDEST" and drop_oldest(queue)
    why = not dropped and {
      cause = "o", reason = "MaxMessageCountExceeded",
      description = "the subscription has as many messages as MaxMessageCount permits: "
        .. text(target.max_message_count),
    }
  end
  if why then
    target.sequence = target.sequence + 1
    dead_letter_incoming(queue, text(target.sequence), (lifetime(topic.now, ttl_ms, copy.ends_ms)), copy, origin, why)
    return 0
  end
  append_message(queue or target, target, {
    size = copy.size, payload = copy.payload, ttl_ms = ttl_ms, ends_ms = copy.ends_ms, session = copy.session,
  }, origin)
  target.added = target.added + copy.bytes
  return dropped or 0
end
