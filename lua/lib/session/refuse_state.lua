-- refuse_state returns why a session does not get another state, as a code and its detail, nil when it does: the state
-- it has is not of the expected version (SESS-33a), or a queue has as many as it may (SESS-33c). The quota of bytes is
-- up to the caller.
--@include base/text
local function refuse_state(queue, record, expected, limit)
  if expected >= 0 and record.version ~= expected then
    return "PRECONDITION_FAILED", text(record.version)
  end
  if record.version == 0 and redis.call("HLEN", queue.session_states) + (queue.new_states or 0) >= limit then
    return "QUOTA_EXCEEDED", limit
  end
  return nil
end
