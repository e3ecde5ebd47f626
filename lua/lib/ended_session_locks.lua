-- ended_session_locks adds to items the locks of messages of sessions whose lock has ended (SESS-22), session by session, until
-- they are at least slice. Returns how many locks each of those sessions has.
--@include session_locks_of
--@include text
--@include note_end
local function ended_session_locks(queue, slice, items)
  local left = {}
  local ended = redis.call("ZRANGEBYSCORE", queue.session_locks, "-inf", queue.now, "WITHSCORES", "LIMIT", 0, slice)
  for i = 1, #ended, 2 do
    local session, ends = ended[i], tonumber(ended[i + 1])
    if #items >= slice then
      break
    end
    left[session] = 0
    note_end(queue, ends)
    for _, lock in ipairs(session_locks_of(queue, session)) do
      local position = text(tonumber(string.match(lock, "(%d+):[^:]*$")))
      items[#items + 1] = { lock = lock, ended = ends, position = position, session = session }
      left[session] = left[session] + 1
    end
  end
  return left
end
