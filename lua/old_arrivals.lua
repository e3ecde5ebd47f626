-- old_arrivals: find sources whose last transfer to a destination arrived long ago and which may be gone, in one slice
-- of them.
-- Reads: arrivals.  Writes: nothing.
-- Flags: no-writes
--
-- KEYS[1] arrivals  hash  source -> its last transfer that has arrived: see arrive
-- ARGV[1] now       int   0 = server time
-- ARGV[2] old_ms    int   how long ago
-- ARGV[3] cursor    str   "0" = from the start, else where the slice before ended
-- ARGV[4] slice     int   about so many sources
--
-- Returns
--   OK  cursor, then source, note, in turn; the cursor is "0" when this was the last slice
-- Cost: O(slice)
--@include base/now_ms
local arrivals = KEYS[1]
local now, old_ms, cursor, slice = now_ms(ARGV[1]), tonumber(ARGV[2]), ARGV[3], ARGV[4]

local page = redis.call("HSCAN", arrivals, cursor, "COUNT", slice)
local found, notes = { "OK", page[1] }, page[2]
for i = 1, #notes, 2 do
  local at = tonumber(string.match(notes[i + 1], "^%d+:%d+:(%d+):"))
  if at <= now - old_ms then
    found[#found + 1], found[#found + 2] = notes[i], notes[i + 1]
  end
end
return found
