-- refuse_set_state returns why an operation of a transaction cannot set or clear the state of a session, as { code,
-- details ... }, nil when it can: then the state is counted in the quota, which may be nil, and operation.session is
-- the session. limit is the most states of a queue. NEEDS_ALL says that the bytes of the topic must be added up first.
--@include base/text
--@include entity/can_receive
--@include session/held_session
--@include session/refuse_state
--@include session/session_record
--@include transaction/lacks_quota
local function refuse_set_state(queue, operation, quota, limit, args)
  local size = operation.count > 0 and tonumber(args[operation.from + 1]) or nil
  if queue.is_topic then
    return { "ENTITY_NOT_FOUND" }
  end
  if not can_receive(queue.status) then
    return { "ENTITY_DISABLED", queue.status }
  end
  if not queue.has_sessions then
    return { "SESSION_NOT_SUPPORTED" }
  end
  if not quota then
    return { "ENTITY_NOT_FOUND" }
  end
  if (size or 0) > quota.max_message_bytes then
    return { "SESSION_STATE_TOO_LARGE", size, quota.max_message_bytes }
  end
  operation.session = held_session(queue, operation.token)
  if not operation.session then
    return { "SESSION_LOCK_LOST" }
  end
  local record = session_record(queue, operation.session)
  local refused, detail = refuse_state(queue, record, tonumber(operation.first), size and limit or math.huge)
  if refused then
    return { refused, detail }
  end
  local more = math.max((size or 0) - record.state_size, 0)
  if lacks_quota(quota, more) then
    return { "NEEDS_ALL" }
  end
  if more > 0 and quota.held + more > quota.max_bytes then
    return { "ENTITY_FULL", "bytes", text(quota.held + more), text(quota.max_bytes), text(quota.dead_bytes) }
  end
  quota.held = quota.held + more
  if size and record.version == 0 then
    queue.new_states = (queue.new_states or 0) + 1
  end
  return nil
end
