-- drop_oldest removes the available message with the lowest number, for another one (TOPIC-7). Returns its bytes, nil
-- when there is none.
--@include available/oldest_available
--@include session/oldest_in_sessions
--@include log/entry_at
--@include session/session_of
--@include available/take_unlocked
--@include log/remove_entry
local function drop_oldest(queue)
  local main = queue.main
  local position = main.by_session and oldest_in_sessions(queue) or oldest_available(main)
  local entry = position and entry_at(main, position)
  if not entry then
    return nil
  end
  take_unlocked(queue, main, position, session_of(entry))
  return remove_entry(queue, main, entry)
end
