-- arrive_in_topic: as arrive, for a topic: store copies of what a transfer carries in its subscriptions (FWD-1, TOPIC-1). Which copies
-- there are was decided by the routes of one version; by other routes nothing is done.
-- Reads: topic, arrivals, history, entity of every subscription.  Writes: topic, arrivals, history, subscriptions that get copies.
--
-- KEYS[1] topic          hash    options and state of the topic
-- KEYS[2] arrivals       hash    source -> its last transfer that has arrived: see arrive
-- KEYS[3] history        hash    key of a message -> "<accepted>:<number>" (DUP-1)
-- KEYS[4] history_times  zset    key of a message by when it was accepted (ms)
-- KEYS[5..?] others      -       as in publish: if the caller was told NEEDS_ALL, the entity of the topic and of every subscription; then
--                                for each subscription that gets copies what its letter in levels says
-- ARGV[1] now          int  0 = server time
-- ARGV[2] incarnation  int  of the topic
-- ARGV[3] source       str  field of arrivals
-- ARGV[4] number       int  of the transfer
-- ARGV[5] last         int  0: do nothing if not every message can be stored
-- ARGV[6] version      int  of the routes
-- ARGV[7] bytes        int  of all copies, at most
-- ARGV[8] all          int  number of keys given for NEEDS_ALL
-- ARGV[9] levels       str  see lib/open_copies.lua
-- ARGV[10..] per message size, when it ends at the latest (ms, 0 = whenever), id, partition, bytes of its copies, and its copies as in
--            lib/read_copies.lua
--
-- Returns
--   OK                alarm news outcomes    news: of subscriptions, see lib/close_copies.lua
--   NOT_YET           nothing was done, as with the following
--   ROUTES_CHANGED
--   NEEDS_KEYS        subscription letter ...  which of them need more keys
--   NEEDS_ALL         the topic may be full: its size must be added up
--   ENTITY_NOT_FOUND  there is no topic of that incarnation, nor will there ever be
-- Cost: O(messages + copies log N), and O(subscriptions) where the topic may be full
--@include now_ms
--@include text
--@include open_topic
--@include open_copies
--@include read_copies
--@include each_copy
--@include store_copies
--@include close_copies
--@include held_bytes
--@include arrived_before
--@include note_arrival
--@include can_send
--@include history_key
--@include history_room
--@include remembered
--@include remember
--@include forget_old
--@include keep_alarm
local arrivals, levels = KEYS[2], ARGV[9]
local now, incarnation, source, number, last = now_ms(ARGV[1]), ARGV[2], ARGV[3], ARGV[4], ARGV[5] == "1"
local version, bytes, all = ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8])

local topic = open_topic(KEYS[1], now)
if not topic or redis.call("HGET", KEYS[1], "incarnation") ~= incarnation then
  return { "ENTITY_NOT_FOUND" }
end
local before = arrived_before(arrivals, source, number)
if before then
  return { "OK", "0", {}, before }
end
if topic.version ~= version then
  return { "ROUTES_CHANGED" }
end
topic.history, topic.history_times = KEYS[3], KEYS[4]
local targets, needs = open_copies(levels, KEYS, 5 + all, now)
if needs then
  return { "NEEDS_KEYS", unpack(needs) }
end
local held = topic.most_bytes
if held + bytes > topic.max_bytes then
  if all == 0 then
    return { "NEEDS_ALL" }
  end
  held = held_bytes(KEYS, 5, 4 + all)
end
for _, target in ipairs(targets) do
  if target.max_message_count > 0 and not target.makes_room then
    target.messages = redis.call("XLEN", target.log)
  end
end

local messages, at = {}, 10
while at <= #ARGV do
  local message, ends_ms = { bytes = tonumber(ARGV[at]), copies_bytes = tonumber(ARGV[at + 4]) }, tonumber(ARGV[at + 1])
  message.key = topic.deduplicates and history_key(topic.partitioned, ARGV[at + 2], ARGV[at + 3]) or nil
  message.copies, at = read_copies(ARGV, at + 5)
  for _, form in ipairs(message.copies.forms) do
    form.ends_ms = ends_ms > 0 and ends_ms or nil
  end
  messages[#messages + 1] = message
end

-- copies_for counts the copies of a message that go into each subscription.
local function copies_for(message)
  local counts = {}
  each_copy(message.copies.copies, function(i, _, reason)
    counts[i] = (counts[i] or 0) + (reason and 0 or 1)
  end)
  return counts
end

-- too_many says whether a bounded subscription has no room for so many more.
local function too_many(counts)
  for i, count in pairs(counts) do
    local target = targets[i]
    if target.messages and count > 0 and target.messages + count > target.max_message_count then
      return true
    end
  end
  return false
end

local room, free, seen = topic.deduplicates and history_room(topic), topic.max_bytes - held, {}

-- decide gives the outcome of a message, those before it having got theirs. Of a duplicate nothing is stored (DUP-9).
local function decide(message)
  if message.bytes > topic.max_message_bytes then
    return "s"
  end
  if not can_send(topic.status) then
    return "d"
  end
  if message.key and (seen[message.key] or remembered(topic, message.key)) then
    message.is_known = true
    return "."
  end
  if message.copies.copies == "" and topic.fails_unmatched then
    return "u"
  end
  local counts = copies_for(message)
  if message.copies_bytes > free or too_many(counts) then
    return "f"
  end
  if message.key and room < 1 then
    return "q"
  end
  for i, count in pairs(counts) do
    targets[i].messages = targets[i].messages and targets[i].messages + count
  end
  free = free - message.copies_bytes
  if message.key then
    seen[message.key], room = true, room - 1
  end
  return "."
end

local letters = {}
for i, message in ipairs(messages) do
  letters[i] = decide(message)
  if letters[i] ~= "." and not last then
    return { "NOT_YET" }
  end
end

local sequence = topic.sequence
for i, message in ipairs(messages) do
  if letters[i] == "." and not message.is_known then
    sequence = sequence + 1
    held = held + store_copies(topic, targets, message.copies, text(sequence))
    if message.key then
      remember(topic, message.key, sequence)
    end
  end
end
redis.call("HSET", topic.entity, "sequence", text(sequence), "most_bytes", text(held))
if topic.deduplicates then
  forget_old(topic, 100 + 2 * #messages)
end
local outcomes = note_arrival(arrivals, source, number, now, letters)
return { "OK", keep_alarm(topic), close_copies(targets), outcomes }
