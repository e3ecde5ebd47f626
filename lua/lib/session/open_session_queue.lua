-- open_session_queue opens a queue for a verb about sessions. Returns the queue, or as second result the reply that
-- refuses the verb.
--@include entity/open_queue
local function open_session_queue(keys, now)
  local queue = open_queue(keys, now)
  if not queue then
    return nil, { "ENTITY_NOT_FOUND" }
  end
  if not queue.has_sessions then
    return nil, { "SESSION_NOT_SUPPORTED" }
  end
  return queue
end
