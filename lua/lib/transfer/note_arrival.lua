-- note_arrival notes what became of the messages of a transfer: a letter for each in their order, "." for stored, or ""
-- when all were stored. d = ENTITY_DISABLED, f = ENTITY_FULL, q = QUOTA_EXCEEDED, m = SESSION_ID_MISSING, s =
-- MESSAGE_SIZE_EXCEEDED, u = NO_MATCHING_SUBSCRIPTION. Returns the note.
--@include base/text
local function note_arrival(arrivals, source, id, now, letters)
  local outcomes = table.concat(letters)
  if not string.find(outcomes, "[^.]") then
    outcomes = ""
  end
  redis.call("HSET", arrivals, source, id .. ":" .. text(now) .. ":" .. outcomes)
  return outcomes
end
