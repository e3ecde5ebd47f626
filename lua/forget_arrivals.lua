-- forget_arrivals: forget transfers of sources that are gone, and look again later at those that are not.
-- Reads: arrivals.  Writes: arrivals.
-- Flags: allow-oom
--
-- KEYS[1] arrivals  hash  source -> its last transfer that has arrived: see arrive
-- ARGV[1] now       int   0 = server time
-- ARGV[2..] source note is_gone ...  what old_arrivals returned, and 1 or 0
--
-- Returns
--   OK
-- Cost: O(sources)
--@include base/now_ms
--@include base/text
--@include base/slice
local arrivals, now, items = KEYS[1], now_ms(ARGV[1]), slice(ARGV, 2)

for i = 1, #items, 3 do
  local source, note = items[i], items[i + 1]
  if redis.call("HGET", arrivals, source) == note then
    if items[i + 2] == "1" then
      redis.call("HDEL", arrivals, source)
    else
      redis.call("HSET", arrivals, source, (string.gsub(note, "^(%d+:%d+):%d+:", "%1:" .. text(now) .. ":")))
    end
  end
end
return { "OK" }
