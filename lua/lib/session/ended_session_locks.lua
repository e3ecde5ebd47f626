-- ended_session_locks adds to items the locks of messages whose session lock has ended (SESS-22), session by session,
-- until there are slice or more. Returns how many locks each of these sessions has.
--@include session/locks_of_session
--@include base/text
--@include due/note_held_until
local function ended_session_locks(queue, slice, items)
  local left = {}
  local ended = redis.call("ZRANGEBYSCORE", queue.session_locks, "-inf", queue.now, "WITHSCORES", "LIMIT", 0, slice)
  for i = 1, #ended, 2 do
    local session, ends = ended[i], tonumber(ended[i + 1])
    if #items >= slice then
      break
    end
    left[session] = 0
    note_held_until(queue, ends)
    for _, lock in ipairs(locks_of_session(queue, session)) do
      local position = text(tonumber(string.match(lock, "(%d+):[^:]*$")))
      items[#items + 1] = { lock = lock, ended = ends, position = position, session = session }
      left[session] = left[session] + 1
    end
  end
  return left
end
