-- read_sessions reads the records of sessions, all at once: see session_record.
--@include session/session_record
--@include base/in_pieces
local function read_sessions(queue, sessions)
  local at = 0
  in_pieces(sessions, function(...)
    for _, text in ipairs(redis.call("HMGET", queue.sessions, ...)) do
      at = at + 1
      queue.records[sessions[at]] = parse_session(text)
    end
  end)
end
