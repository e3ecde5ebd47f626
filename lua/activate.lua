-- activate: enqueue due scheduled messages of a topic, with their copies, as if they were sent now (SCHED-3, SCHED-7,
-- MSG-7). Each leaves scheduled and gets its copies in this one step; one that is no longer scheduled, or not due, is
-- skipped, and so is another one that got its number after Redis had forgotten it (DUR-4). The routes of one version
-- decided which copies there are; with other routes nothing is done.
-- Reads: topic.  Writes: topic, scheduled, due, scheduled_ids, subscriptions that get copies.
--
-- KEYS[1] topic          hash    options and state of the topic
-- KEYS[2] scheduled      stream  scheduled messages: see publish
-- KEYS[3] due            zset    number, 16 digits, of scheduled messages by when they are due (ms)
-- KEYS[4] scheduled_ids  zset    of scheduled messages: see lib/schedule/scheduled_id.lua
-- KEYS[5] bodies         hash    as in publish
-- KEYS[6] body_uses      hash    as in publish
-- KEYS[7..?] others      -       for each subscription that gets copies what its letter in levels says
-- ARGV[1] now      int  0 = server time
-- ARGV[2] version  int  of the routes
-- ARGV[3] levels   str  see lib/topic/open_copies.lua
-- ARGV[4..] per message: its number, when it was accepted (ms), its id, and its copies as in lib/topic/read_copies.lua
--
-- Returns
--   OK                notifications of subscriptions: see lib/topic/close_copies.lua
--   ROUTES_CHANGED    nothing was done, as with the following
--   NEEDS_KEYS        subscription letter ...  which of them need more keys
--   ENTITY_NOT_FOUND
-- Cost: O(messages + copies log N)
--@include base/now_ms
--@include base/text
--@include entity/open_topic
--@include topic/open_copies
--@include topic/read_copies
--@include topic/store_copies
--@include topic/close_copies
--@include schedule/scheduled_at
--@include entity/touch_at
--@include schedule/scheduled_id
local scheduled, due, scheduled_ids = KEYS[2], KEYS[3], KEYS[4]
local now, version, levels = now_ms(ARGV[1]), ARGV[2], ARGV[3]

local topic = open_topic(KEYS[1], now)
if not topic then
  return { "ENTITY_NOT_FOUND" }
end
if topic.version ~= version then
  return { "ROUTES_CHANGED" }
end
topic.default_ttl_ms = -1 -- it was applied when they were sent (TTL-22)
redis.call("XLEN", scheduled) -- as in lib/base/check_key_types
redis.call("ZCARD", due)
redis.call("ZCARD", scheduled_ids)
topic.bodies, topic.body_uses = KEYS[5], KEYS[6]
redis.call("HLEN", topic.bodies)
redis.call("HLEN", topic.body_uses)
local targets, needs = open_copies(levels, KEYS, 7, now)
if needs then
  return { "NEEDS_KEYS", unpack(needs) }
end

-- take removes a scheduled message and returns its bytes, nil when it is not scheduled or not due, or when another one
-- has its number.
local function take(number, accepted, id)
  local member = string.format("%016d", number)
  local due_ms = redis.call("ZSCORE", due, member)
  if not due_ms or tonumber(due_ms) > now then
    return nil
  end
  local entry = scheduled_at(scheduled, number)
  if entry and (string.match(entry[2][1], "^%d+") ~= accepted or entry[2][4] ~= id) then
    return nil
  end
  redis.call("ZREM", due, member)
  if not entry then
    return nil
  end
  redis.call("XDEL", scheduled, entry[1])
  redis.call("ZREM", scheduled_ids, scheduled_id(entry[2][4], member))
  return tonumber(string.match(entry[1], "%d+$"))
end

local sequence, bytes, most_bytes, at = topic.sequence, topic.bytes, topic.most_bytes, 4
while at <= #ARGV do
  local number, accepted, id, copies = ARGV[at], ARGV[at + 1], ARGV[at + 2], nil
  copies, at = read_copies(ARGV, at + 3)
  local size = take(number, accepted, id)
  if size then
    sequence, bytes = sequence + 1, bytes - size
    most_bytes = most_bytes - size + store_copies(topic, targets, copies, text(sequence))
  end
end
if sequence > topic.sequence then
  touch_at(topic.entity, now) -- until now it had scheduled messages (IDLE-3)
end
redis.call("HSET", topic.entity, "sequence", text(sequence), "bytes", text(bytes), "most_bytes", text(most_bytes))
return { "OK", close_copies(topic, targets) }
