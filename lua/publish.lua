-- publish: put messages into a topic and their copies into its subscriptions (TOPIC-2, SEND-1, SCHED-7, DUP-9). Several calls ride in
-- one: each call is stored whole or not at all (BATCH-1), and one that is refused takes no other with it. Which copies there are was
-- decided by the routes of one version; by other routes nothing is done.
-- Reads: topic, history, entity of every subscription.  Writes: all of the topic but status and options, subscriptions that get copies.
--
-- KEYS[1] topic          hash    options and state of the topic
-- KEYS[2] scheduled      stream  scheduled messages: id <number>-<size>, field <accepted>:<ttl_ms> with the payload, i id, p partition
-- KEYS[3] due            zset    number, 16 digits, of scheduled messages by when they are due (ms)
-- KEYS[4] scheduled_ids  zset    "<message id>\0<number, 16 digits>" of scheduled messages
-- KEYS[5] history        hash    key of a message -> "<accepted>:<number>" (DUP-1)
-- KEYS[6] history_times  zset    key of a message by when it was accepted (ms)
-- KEYS[7..?] others      -       if the caller was told NEEDS_ALL, the entity of the topic and of every subscription; then for each
--                                subscription that gets copies what its letter in levels says
-- ARGV[1] now      int  0 = server time
-- ARGV[2] version  int  of the routes
-- ARGV[3] bytes    int  of all copies and scheduled messages, at most
-- ARGV[4] all      int  number of keys given for NEEDS_ALL
-- ARGV[5] levels   str  see lib/open_copies.lua
-- ARGV[6..] per call: count, then per message "<size>" or "<size>:<ttl_ms>", due_ms (0 = at once), id, partition, bytes of its copies,
--           and its copies as in lib/read_copies.lua; the first form of a scheduled message is the message itself
--
-- Returns
--   OK  alarm news, then per call the number of its first message, the others follow; or a list, one of
--         EACH number ...            (with the sign turned: a duplicate of that number)
--         MESSAGE_SIZE_EXCEEDED index actual limit  (index -1: the batch)
--         ENTITY_DISABLED status
--         PARTITION_KEY_MISMATCH
--         ENTITY_FULL what actual limit dead_bytes subscription  (0: the topic)
--         QUOTA_EXCEEDED limit
--         NO_MATCHING_SUBSCRIPTION index
--         INTERNAL
--       news: of subscriptions, see lib/close_copies.lua
--   ROUTES_CHANGED     nothing was done, as with the following
--   NEEDS_KEYS         subscription letter ...  which of them need more keys
--   NEEDS_ALL          the topic may be full: its size must be added up
--   ENTITY_NOT_FOUND
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
--@include can_send
--@include history_key
--@include history_room
--@include remembered
--@include remember
--@include forget_old
--@include size_and_ttl
--@include shorter_ttl
--@include expect
--@include keep_alarm
local scheduled, due, scheduled_ids, levels = KEYS[2], KEYS[3], KEYS[4], ARGV[5]
local now, version, bytes, all = now_ms(ARGV[1]), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])

local topic = open_topic(KEYS[1], now)
if not topic then
  return { "ENTITY_NOT_FOUND" }
end
if topic.version ~= version then
  return { "ROUTES_CHANGED" }
end
topic.history, topic.history_times = KEYS[5], KEYS[6]
local targets, needs = open_copies(levels, KEYS, 7 + all, now)
if needs then
  return { "NEEDS_KEYS", unpack(needs) }
end
local held, dead_bytes = topic.most_bytes, 0
if held + bytes > topic.max_bytes then
  if all == 0 then
    return { "NEEDS_ALL" }
  end
  held, dead_bytes = held_bytes(KEYS, 7, 6 + all)
end

-- bounded are the subscriptions for which a message is refused when they have too many.
local bounded = false
for _, target in ipairs(targets) do
  if target.max_message_count > 0 and not target.makes_room then
    target.messages, bounded = redis.call("XLEN", target.log), true
  end
end

local sequence, topic_bytes = topic.sequence, topic.bytes

-- read_call reads the messages of a call. Of a duplicate the original's number is known, 0 if it is in the same call.
local function read_call(at, count)
  local messages, new = {}, {}
  for i = 1, count do
    local size, ttl_ms = size_and_ttl(ARGV[at])
    local message = { size = size, ttl_ms = ttl_ms, due_ms = tonumber(ARGV[at + 1]), id = ARGV[at + 2], partition = ARGV[at + 3] }
    message.bytes = tonumber(ARGV[at + 4])
    message.copies, at = read_copies(ARGV, at + 5)
    if message.due_ms > now then
      message.waits, message.bytes = true, tonumber(size)
    end
    if topic.deduplicates then
      message.key = history_key(topic.partitioned, message.id, message.partition)
      message.original = new[message.key] and 0 or remembered(topic, message.key)
      new[message.key] = true
    end
    messages[i] = message
  end
  return messages, at
end

-- too_many finds a subscription that would have more messages than it may, and how many it would have.
local function too_many(messages)
  local more = {}
  for _, message in ipairs(messages) do
    if not message.original and not message.waits then
      each_copy(message.copies.copies, function(i, _, reason)
        more[i] = (more[i] or 0) + (reason and 0 or 1)
      end)
    end
  end
  for i, count in pairs(more) do
    local target = targets[i]
    if target.messages and count > 0 and target.messages + count > target.max_message_count then
      return i, target.messages + count
    end
  end
  return nil, more
end

local function too_large(messages)
  local total = 0
  for i, message in ipairs(messages) do
    local size = tonumber(message.size)
    if size > topic.max_message_bytes then
      return { "MESSAGE_SIZE_EXCEEDED", i - 1, size, topic.max_message_bytes }
    end
    total = total + size
  end
  if #messages > 1 and total > topic.max_batch_bytes then
    return { "MESSAGE_SIZE_EXCEEDED", -1, total, topic.max_batch_bytes }
  end
  return nil
end

-- refusal gives the reason why a call cannot be stored, or nil, how many of its messages are to be stored and, for subscriptions
-- that are bounded, the copies of each.
local function refusal(messages)
  local refused = too_large(messages)
  if refused then
    return refused
  end
  if not can_send(topic.status) then
    return { "ENTITY_DISABLED", topic.status }
  end
  local stored, new, unmatched = 0, 0, nil
  for i, message in ipairs(messages) do
    if topic.partitioned and message.partition ~= messages[1].partition then
      return { "PARTITION_KEY_MISMATCH" }
    end
    if not message.original then
      stored, new = stored + message.bytes, new + 1
      unmatched = unmatched or (not message.waits and message.copies.copies == "" and i)
    end
  end
  if unmatched and topic.fails_unmatched then
    return { "NO_MATCHING_SUBSCRIPTION", unmatched - 1 }
  end
  if new > 0 and held + stored > topic.max_bytes then
    return { "ENTITY_FULL", "bytes", text(held + stored), text(topic.max_bytes), text(dead_bytes), 0 }
  end
  local more = {}
  if bounded then
    local which, count = too_many(messages)
    if which then
      return { "ENTITY_FULL", "messages", count, targets[which].max_message_count, "0", which }
    end
    more = count
  end
  if topic.deduplicates and new > 0 and new > history_room(topic) then
    return { "QUOTA_EXCEEDED", topic.duplicate_max_entries }
  end
  if sequence + new > 9007199254740991 then
    return { "INTERNAL" }
  end
  return nil, new, more
end

-- schedule stores a message that is to be enqueued later, by the rules of that time (SCHED-7).
local function schedule(message, number)
  local member = string.format("%016d", number)
  local times = text(now) .. ":" .. text(shorter_ttl(message.ttl_ms, topic.default_ttl_ms))
  redis.call("XADD", scheduled, number .. "-" .. message.size, times, message.copies.forms[1].payload,
    "i", message.id, "p", message.partition)
  redis.call("ZADD", due, message.due_ms, member)
  redis.call("ZADD", scheduled_ids, 0, message.id .. "\0" .. member)
  expect(topic, message.due_ms)
  topic_bytes, held = topic_bytes + message.size, held + message.size
  if tonumber(message.size) > topic.largest then
    topic.largest = tonumber(message.size)
    redis.call("HSET", topic.entity, "largest", message.size)
  end
end

-- store stores one message and gives its number.
local function store(message)
  sequence = sequence + 1
  local number = text(sequence)
  if message.waits then
    schedule(message, number)
  else
    held = held + store_copies(topic, targets, message.copies, number)
  end
  if message.key then
    remember(topic, message.key, sequence)
  end
  return number
end

-- store_call stores the messages of a call and gives what the caller is told.
local function store_call(messages, new)
  if new == #messages then
    local first = text(sequence + 1)
    for _, message in ipairs(messages) do
      store(message)
    end
    return first
  end
  local numbers = { "EACH" }
  for i, message in ipairs(messages) do
    local original = message.original
    if original then
      numbers[i + 1] = text(-(original > 0 and original or remembered(topic, message.key)))
    else
      numbers[i + 1] = store(message)
    end
  end
  return numbers
end

local results, accepted, at = {}, false, 6
while at <= #ARGV do
  local messages
  messages, at = read_call(at + 1, tonumber(ARGV[at]))
  local refused, new, more = refusal(messages)
  if refused then
    results[#results + 1] = refused
  else
    results[#results + 1] = store_call(messages, new)
    accepted = true
    for i, count in pairs(more) do
      targets[i].messages = targets[i].messages and targets[i].messages + count
    end
  end
end
if accepted then
  redis.call("HSET", topic.entity, "sequence", text(sequence), "bytes", text(topic_bytes), "most_bytes", text(held),
    "accessed_ms", text(now))
elseif held < topic.most_bytes then
  redis.call("HSET", topic.entity, "most_bytes", text(held))
end
if topic.deduplicates then
  forget_old(topic, 100 + 2 * (sequence - topic.sequence))
end
local news = close_copies(targets)
return { "OK", keep_alarm(topic), news, unpack(results) }
