-- drop_oldest removes the available message with the lowest number to make room for another (TOPIC-7). Returns how many bytes it had,
-- nil when there is none.
--@include group_of
--@include session_of
--@include take_unlocked
--@include remove_entry
local function drop_oldest(queue)
  local main, from = queue.main, "-"
  while from do
    local entries = redis.call("XRANGE", main.log, from, "+", "COUNT", 10)
    for _, entry in ipairs(entries) do
      local position = string.match(entry[1], "^%d+")
      if group_of(main, position, entry) == "a" then
        take_unlocked(queue, main, position, session_of(entry))
        return remove_entry(queue, main, entry)
      end
    end
    from = entries[10] and "(" .. entries[10][1]
  end
  return nil
end
