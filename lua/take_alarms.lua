-- take_alarms: find the entities that are due, and lease them to a sweeper. If it crashes, the alarms come back.
-- Reads: alarms.  Writes: alarms.
-- Flags: allow-oom
--
-- KEYS[1] alarms    zset  folded name by when a sweeper is to come (ms)
-- ARGV[1] now       int   0 = server time
-- ARGV[2] taken_ms  int   for how long
-- ARGV[3] limit     int   most entities
--
-- Returns
--   OK  after_ms until_ms name ...
--       after_ms: when the next alarm is due, -1 = none is set; until_ms: what the alarms were set to meanwhile
-- Cost: O(limit log entities)
--@include base/now_ms
--@include base/text
local alarms = KEYS[1]
local now, taken_ms, limit = now_ms(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])

local names = redis.call("ZRANGEBYSCORE", alarms, "-inf", now, "LIMIT", 0, limit)
for _, name in ipairs(names) do
  redis.call("ZADD", alarms, now + taken_ms, name)
end
local first = redis.call("ZRANGE", alarms, 0, 0, "WITHSCORES")[2]
local after = first and math.max(0, first - now) or -1
return { "OK", text(after), text(now + taken_ms), unpack(names) }
