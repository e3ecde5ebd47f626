-- activate: enqueue scheduled messages of a topic whose time has come, with their copies, as if they were sent now (SCHED-3, SCHED-7,
-- MSG-7). Each leaves scheduled and gets its copies in this one step; one that is not scheduled any more, or not due, is passed over.
-- Which copies there are was decided by the routes of one version; by other routes nothing is done.
-- Reads: topic.  Writes: topic, scheduled, due, scheduled_ids, subscriptions that get copies.
--
-- KEYS[1] topic          hash    options and state of the topic
-- KEYS[2] scheduled      stream  scheduled messages: see publish
-- KEYS[3] due            zset    number, 16 digits, of scheduled messages by when they are due (ms)
-- KEYS[4] scheduled_ids  zset    "<message id>\0<number, 16 digits>" of scheduled messages
-- KEYS[5..?] others      -       for each subscription that gets copies what its letter in levels says
-- ARGV[1] now      int  0 = server time
-- ARGV[2] version  int  of the routes
-- ARGV[3] levels   str  see lib/open_copies.lua
-- ARGV[4..] per message: its number, and its copies as in lib/read_copies.lua
--
-- Returns
--   OK                news of subscriptions: see lib/close_copies.lua
--   ROUTES_CHANGED    nothing was done, as with the following
--   NEEDS_KEYS        subscription letter ...  which of them need more keys
--   ENTITY_NOT_FOUND
-- Cost: O(messages + copies log N)
--@include now_ms
--@include text
--@include open_topic
--@include open_copies
--@include read_copies
--@include store_copies
--@include close_copies
--@include entry_at
--@include note_use
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
local targets, needs = open_copies(levels, KEYS, 5, now)
if needs then
  return { "NEEDS_KEYS", unpack(needs) }
end

-- take removes a message from the scheduled ones and gives its bytes, nil when it is none of them or not due.
local function take(number)
  local member = string.format("%016d", number)
  local due_ms = redis.call("ZSCORE", due, member)
  if not due_ms or tonumber(due_ms) > now then
    return nil
  end
  local entry = entry_at(scheduled, number)
  redis.call("ZREM", due, member)
  if not entry then
    return nil
  end
  redis.call("XDEL", scheduled, entry[1])
  redis.call("ZREM", scheduled_ids, entry[2][4] .. "\0" .. member)
  return tonumber(string.match(entry[1], "%d+$"))
end

local sequence, bytes, most_bytes, at = topic.sequence, topic.bytes, topic.most_bytes, 4
while at <= #ARGV do
  local number, copies = ARGV[at], nil
  copies, at = read_copies(ARGV, at + 1)
  local size = take(number)
  if size then
    sequence, bytes = sequence + 1, bytes - size
    most_bytes = most_bytes - size + store_copies(topic, targets, copies, text(sequence))
  end
end
if sequence > topic.sequence then
  note_use(topic.entity, now) -- until now it had scheduled messages (IDLE-3)
end
redis.call("HSET", topic.entity, "sequence", text(sequence), "bytes", text(bytes), "most_bytes", text(most_bytes))
return { "OK", close_copies(targets) }
