-- append_to_session stores a message at the tail of its session, which gives it the next SessionSequence (MSG-19, SESS-25).
--@include put_in_session
--@include session_record
--@include text
local function append_to_session(queue, log, position, size, times, payload, session)
  local record = session_record(queue, session)
  record.sequence, record.activity = record.sequence + 1, queue.now
  redis.call("XADD", log, position .. "-" .. size, times, payload, "s", session, "q", text(record.sequence))
  put_in_session(queue, session, "a", position)
end
