-- places_in_session finds the messages of a session from a position on, at most limit, in order. show has their letters
-- (peek.lua).
--@include base/text
local function places_in_session(queue, session, from, limit, show)
  local places = {}
  local function add(key, letter, members_of, scheduled)
    if not string.find(show, members_of, 1, true) then
      return
    end
    local first = session .. "\0" .. letter
    local rows = redis.call("ZRANGE", key, "[" .. first .. string.format("%016d", from), "(" .. first .. ":", "BYLEX",
      "LIMIT", 0, limit)
    for _, row in ipairs(rows) do
      local digits = string.sub(row, #first + 1, #first + 16)
      places[#places + 1] = { position = text(tonumber(digits)), scheduled = scheduled }
    end
  end
  add(queue.by_session, "a", "a", false)
  add(queue.by_session, "w", "a", false)
  add(queue.by_session, "x", "a", false)
  add(queue.by_session, "d", "d", false)
  add(queue.by_session, "s", "s", true)
  add(queue.main.locks, "", "l", false)
  table.sort(places, function(one, other) return tonumber(one.position) < tonumber(other.position) end)
  while #places > limit do
    places[#places] = nil
  end
  return places
end
