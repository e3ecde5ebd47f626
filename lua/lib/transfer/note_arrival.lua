-- note_arrival notes what became of the messages of a transfer: a letter for each in their order, "." for stored, or ""
-- when all were stored. d = ENTITY_DISABLED, f = ENTITY_FULL, q = QUOTA_EXCEEDED, m = SESSION_ID_MISSING, s =
-- MESSAGE_SIZE_EXCEEDED, u = NO_MATCHING_SUBSCRIPTION. If not all of the transfer are carried, places has "." for each
-- that is and "-" for each that is not, and so has the note; else it is "". Returns the note.
--@include base/text
local function note_arrival(arrivals, source, id, now, letters, places)
  local outcomes, carried = table.concat(letters), 0
  if places ~= "" then
    outcomes = string.gsub(places, "%.", function()
      carried = carried + 1
      return letters[carried]
    end)
  end
  if not string.find(outcomes, "[^.]") then
    outcomes = ""
  end
  redis.call("HSET", arrivals, source, id .. ":" .. text(now) .. ":" .. outcomes)
  return outcomes
end
