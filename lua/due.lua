-- due: read due scheduled messages of a topic, in the order in which they are to be enqueued (SCHED-6).
-- Reads: topic, due, scheduled.  Writes: due, where it names what is not there.
-- Flags: allow-oom
--
-- KEYS[1] topic      hash    options and state of the topic
-- KEYS[2] due        zset    number, 16 digits, of scheduled messages by when they are due (ms)
-- KEYS[3] scheduled  stream  scheduled messages: see publish
-- ARGV[1] now        int  0 = server time
-- ARGV[2] limit      int  most messages
-- ARGV[3] max_bytes  int  most bytes, but always one message
--
-- Returns
--   OK                id, then fields, in turn
--   ENTITY_NOT_FOUND
-- Cost: O(messages log N)
--@include base/now_ms
--@include schedule/scheduled_at
local topic, due, scheduled = KEYS[1], KEYS[2], KEYS[3]
local now, limit, max_bytes = now_ms(ARGV[1]), ARGV[2], tonumber(ARGV[3])

if redis.call("HGET", topic, "kind") ~= "topic" then
  return { "ENTITY_NOT_FOUND" }
end
redis.call("XLEN", scheduled) -- as in lib/base/check_key_types
local found, bytes = {}, 0
for _, member in ipairs(redis.call("ZRANGEBYSCORE", due, "-inf", now, "LIMIT", 0, limit)) do
  local entry = scheduled_at(scheduled, string.match(member, "[1-9]%d*$"))
  if entry then
    bytes = bytes + string.match(entry[1], "%d+$")
    if #found > 0 and bytes > max_bytes then
      break
    end
    found[#found + 1], found[#found + 2] = entry[1], entry[2]
  else
    redis.call("ZREM", due, member) -- keys were changed by hand: it would stay for ever
  end
end
return { "OK", unpack(found) }
