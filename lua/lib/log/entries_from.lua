-- entries_from reads the next messages of a side from a sequence number on, at most limit, in order. show has the
-- letters of peek.lua; with a session only its messages are read. Returns items { entry, number, scheduled } and the
-- number to go on from, "0" at the end.
--@include log/entry_at
--@include log/entries_after
--@include schedule/scheduled_at
--@include entity/drop_orphan
--@include base/text
--@include session/places_in_session
local function entries_from(queue, side, from, limit, show, session)
  local found = {}
  local function add(entry, number, scheduled, position)
    found[#found + 1] = { entry = entry, number = number, scheduled = scheduled, position = position or number }
  end
  if session then
    for _, place in ipairs(places_in_session(queue, session, from, limit, show)) do
      local entry
      if place.scheduled then
        entry = scheduled_at(queue.scheduled, place.position)
      else
        entry = entry_at(side, place.position)
      end
      add(entry, place.position, place.scheduled)
    end
  elseif side.numbers then
    local rows = redis.call("ZRANGEBYSCORE", side.numbers, from, "+inf", "WITHSCORES", "LIMIT", 0, limit)
    for i = 1, #rows, 2 do
      add(entry_at(side, rows[i]), rows[i + 1], false, rows[i])
    end
  elseif show == "d" then
    for _, position in ipairs(redis.call("ZRANGEBYSCORE", side.deferred, from, "+inf", "LIMIT", 0, limit)) do
      add(entry_at(side, position), position, false)
    end
  else
    if show ~= "s" then
      for _, entry in ipairs(entries_after(side, from, limit)) do
        add(entry, string.match(entry[1], "^%d+"), false)
      end
    end
    if string.find(show, "s", 1, true) then
      for _, entry in ipairs(redis.call("XRANGE", queue.scheduled, from, "+", "COUNT", limit)) do
        add(entry, string.match(entry[1], "^%d+"), true)
      end
      table.sort(found, function(a, b) return tonumber(a.number) < tonumber(b.number) end)
    end
  end
  while #found > limit do
    found[#found] = nil
  end
  local next = #found == limit and text(found[limit].number + 1) or "0"
  local there = {}
  for _, item in ipairs(found) do
    if item.entry then
      there[#there + 1] = item
    else
      drop_orphan(queue, side, item.position, session, item.scheduled)
    end
  end
  return there, next
end
