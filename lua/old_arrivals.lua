-- old_arrivals: find sources whose last transfer to a destination arrived long ago: they may be gone.
-- Reads: arrivals.  Writes: nothing.
-- Flags: no-writes
--
-- KEYS[1] arrivals  hash  source -> its last transfer that has arrived: see arrive
-- ARGV[1] now       int   0 = server time
-- ARGV[2] old_ms    int   how long ago
-- ARGV[3] limit     int   most sources
--
-- Returns
--   OK  source, note, in turn
-- Cost: O(sources)
--@include now_ms
local arrivals = KEYS[1]
local now, old_ms, limit = now_ms(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])

local found = { "OK" }
local notes = redis.call("HGETALL", arrivals)
for i = 1, #notes, 2 do
  local at = tonumber(string.match(notes[i + 1], "^%d+:(%d+):"))
  if at <= now - old_ms and #found < 2 * limit then
    found[#found + 1], found[#found + 2] = notes[i], notes[i + 1]
  end
end
return found
