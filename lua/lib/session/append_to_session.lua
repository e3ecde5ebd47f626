-- append_to_session appends a message to its session under the next SessionSequence (MSG-19, SESS-25). origin is its
-- number in the topic it is a copy of, nil for none.
--@include session/put_in_session
--@include session/session_record
--@include base/text
local function append_to_session(queue, log, position, size, times, payload, session, origin)
  local record = session_record(queue, session)
  record.sequence, record.activity = record.sequence + 1, queue.now
  local id, sequence = position .. "-" .. size, text(record.sequence)
  if origin then
    redis.call("XADD", log, id, times, payload, "s", session, "q", sequence, "e", origin)
  else
    redis.call("XADD", log, id, times, payload, "s", session, "q", sequence)
  end
  put_in_session(queue, session, "a", position)
end
