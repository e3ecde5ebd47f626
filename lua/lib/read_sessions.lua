-- read_sessions reads the records of sessions that will be wanted, all at once: see session_record.
--@include session_record
--@include in_pieces
local function read_sessions(queue, sessions)
  local at = 0
  in_pieces(sessions, function(...)
    for _, text in ipairs(redis.call("HMGET", queue.sessions, ...)) do
      at = at + 1
      queue.records[sessions[at]] = read_session(text)
    end
  end)
end
