-- publish: put messages into a topic and their copies into its subscriptions (TOPIC-2, SEND-1, SCHED-7, DUP-9).
-- Several calls share one script: each is stored whole or not at all (BATCH-1), and a refusal does not affect the
-- others. The routes of one version decided which copies there are; with other routes nothing is done.
-- Reads: topic, history, entity of every subscription.  Writes: all of the topic but status and options, subscriptions
-- that get copies.
--
-- KEYS[1] topic          hash    options and state of the topic
-- KEYS[2] scheduled      stream  scheduled messages: id <number>-<size>, field <accepted>:<ttl_ms> with the payload, i
--                                id, p partition
-- KEYS[3] due            zset    number, 16 digits, of scheduled messages by when they are due (ms)
-- KEYS[4] scheduled_ids  zset    of scheduled messages: see lib/schedule/scheduled_id.lua
-- KEYS[5] history        hash    key of a message -> "<accepted>:<number>" (DUP-1)
-- KEYS[6] history_times  zset    key of a message by when it was accepted (ms)
-- KEYS[7..?] others      -       if the caller was told NEEDS_ALL, the entity of the topic and of every subscription;
--                                then for each subscription that gets copies what its letter in levels says; and at the
--                                end, if a call has a request id, requests and request_times as in send (IDEM-1)
-- ARGV[1] now      int  0 = server time
-- ARGV[2] version  int  of the routes
-- ARGV[3] bytes    int  of all copies and scheduled messages, at most
-- ARGV[4] all      int  number of keys given for NEEDS_ALL
-- ARGV[5] levels   str  see lib/topic/open_copies.lua
-- ARGV[6..] per call: count, under a request id as in lib/request/read_request.lua, then per message "<size>" or
--         "<size>:<ttl_ms>", due_ms (0 = at once), id, partition, bytes of its copies, and its copies as in
--         lib/topic/read_copies.lua; the first form of a scheduled message is the message itself
--
-- Returns
--   OK  alarm notifications, then per call the number of its first message, the others follow; or a list, one of
--         EACH number ...            (with the sign turned: a duplicate of that number)
--         AGAIN seed answer          (as in send)
--         OTHER_MESSAGES             (as in send)
--         MESSAGE_SIZE_EXCEEDED index actual limit  (index -1: the batch)
--         ENTITY_DISABLED status
--         TOO_MANY_COPIES copies bytes most_bytes index  (index -1: the call)
--         PARTITION_KEY_MISMATCH
--         ENTITY_FULL what actual limit dead_bytes subscription  (0: the topic)
--         QUOTA_EXCEEDED limit
--         NO_MATCHING_SUBSCRIPTION index
--         INTERNAL
--       notifications: of subscriptions, see lib/topic/close_copies.lua
--   ROUTES_CHANGED     nothing was done, as with the following
--   NEEDS_KEYS         subscription letter ...  which of them need more keys
--   NEEDS_ALL          the topic may be full: its size must be added up
--   ENTITY_NOT_FOUND
-- Cost: O(messages + copies log N), and O(subscriptions) where the topic may be full
--@include base/now_ms
--@include base/text
--@include entity/open_topic
--@include topic/open_copies
--@include topic/read_copies
--@include topic/each_copy
--@include topic/too_many_copies
--@include topic/store_copies
--@include topic/close_copies
--@include entity/held_bytes
--@include intake/refuse
--@include intake/reserve
--@include intake/raise_largest
--@include duplicate/history_key
--@include duplicate/match_history
--@include request/read_request
--@include request/repeat_answer
--@include request/save_answer
--@include duplicate/find_original
--@include duplicate/remember_key
--@include duplicate/forget_old_keys
--@include log/size_and_ttl
--@include log/shorter_ttl
--@include due/expect
--@include due/write_alarm
--@include schedule/scheduled_id
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
local targets, needs, requests = open_copies(levels, KEYS, 7 + all, now)
if needs then
  return { "NEEDS_KEYS", unpack(needs) }
end
-- As in lib/base/check_key_types, of what is seldom there.
if redis.call("EXISTS", scheduled, due, scheduled_ids, topic.history, topic.history_times,
  unpack(KEYS, requests, #KEYS)) > 0 then
  redis.call("XLEN", scheduled)
  redis.call("HLEN", topic.history)
  for _, key in ipairs({ due, scheduled_ids, topic.history_times, KEYS[requests + 1] }) do
    redis.call("ZCARD", key)
  end
  if KEYS[requests] then
    redis.call("HLEN", KEYS[requests])
  end
end
topic.held, topic.dead_bytes = topic.most_bytes, 0
if topic.held + bytes > topic.max_bytes then
  if all == 0 then
    return { "NEEDS_ALL" }
  end
  topic.held, topic.dead_bytes = held_bytes(KEYS, 7, 6 + all)
end

-- bounded reports whether a message is refused when one of the subscriptions has too many.
local bounded = false
for _, target in ipairs(targets) do
  if target.max_message_count > 0 and not target.makes_room then
    target.messages, bounded = redis.call("XLEN", target.log), true
  end
end

local first_number, scheduled_bytes = topic.sequence, topic.bytes

-- read_call reads the messages of a call, and finds those that are duplicates.
local function read_call(at, count)
  local messages, keys = {}, {}
  for i = 1, count do
    local size, ttl_ms = size_and_ttl(ARGV[at])
    local message = { size = size, ttl_ms = ttl_ms, due_ms = tonumber(ARGV[at + 1]), id = ARGV[at + 2],
      partition = ARGV[at + 3] }
    message.bytes = tonumber(ARGV[at + 4])
    message.copied = message.bytes
    message.copies, at = read_copies(ARGV, at + 5)
    if message.due_ms > now then
      message.waits, message.bytes = true, tonumber(size)
    end
    message.key = topic.deduplicates and history_key(topic.partitioned, message.id, message.partition) or nil
    messages[i], keys[i] = message, message.key
  end
  local originals = topic.deduplicates and match_history(topic, keys) or {}
  for i, message in ipairs(messages) do
    message.original = originals[i]
  end
  return messages, at
end

-- full_subscription returns the refusal of a call of which a subscription would have more messages than it may, nil if
-- none would, and then the copies of each.
local function full_subscription(messages)
  local more = {}
  for _, message in ipairs(messages) do
    if not message.original and not message.waits then
      each_copy(message.copies.text, function(i, _, reason)
        more[i] = (more[i] or 0) + (reason and 0 or 1)
      end)
    end
  end
  for i, count in pairs(more) do
    local target = targets[i]
    if target.messages and count > 0 and target.messages + count > target.max_message_count then
      return { "ENTITY_FULL", "messages", target.messages + count, target.max_message_count, "0", i }, {}
    end
  end
  return nil, more
end

-- too_wide returns the refusal of a call that makes too many copies at once, nil if it does not. A scheduled message
-- makes
-- its copies later, in a step of its own, and is looked at alone.
local function too_wide(messages)
  local copies, copied = 0, 0
  local function refused(number, bytes, index)
    return { "TOO_MANY_COPIES", number, text(bytes), text(math.max(67108864, topic.max_message_bytes)), index }
  end
  for i, message in ipairs(messages) do
    if message.waits and too_many_copies(topic, message.copies.count, message.copied) then
      return refused(message.copies.count, message.copied, i - 1)
    elseif not message.waits then
      copies, copied = copies + message.copies.count, copied + message.copied
    end
  end
  return too_many_copies(topic, copies, copied) and refused(copies, copied, -1) or nil
end

-- load_of describes a call for refuse.
local function load_of(messages)
  local load = { count = #messages, total = 0, bytes = 0, new = 0, counted = 0, copies = {} }
  for i, message in ipairs(messages) do
    local size = tonumber(message.size)
    if size > topic.max_message_bytes then
      return { too_large = true, index = i - 1, total = size }
    end
    load.total = load.total + size
    load.is_mixed = load.is_mixed or (topic.partitioned and message.partition ~= messages[1].partition)
    if not message.original then
      load.bytes, load.new = load.bytes + message.bytes, load.new + 1
      if topic.fails_unmatched and not message.waits and message.copies.text == "" then
        load.unmatched = load.unmatched or i - 1
      end
    end
  end
  load.keys = topic.deduplicates and load.new or 0
  load.wide = too_wide(messages)
  if bounded then
    load.full, load.copies = full_subscription(messages)
  end
  return load
end

-- schedule stores a message that is to be enqueued later, by the rules of that time (SCHED-7). Returns its bytes.
local function schedule(message, number)
  local member, payload = string.format("%016d", number), message.copies.forms[1].payload
  local times = text(now) .. ":" .. text(shorter_ttl(message.ttl_ms, topic.default_ttl_ms))
  redis.call("XADD", scheduled, number .. "-" .. message.size, times, payload, "i", message.id, "p", message.partition)
  redis.call("ZADD", due, message.due_ms, member)
  redis.call("ZADD", scheduled_ids, 0, scheduled_id(message.id, member))
  expect(topic, message.due_ms)
  scheduled_bytes = scheduled_bytes + message.size
  raise_largest(topic, #payload)
  return message.bytes
end

-- store stores one message and returns its number. What others made room is held no more.
local function store(message)
  topic.sequence = topic.sequence + 1
  local number = text(topic.sequence)
  local stored = message.waits and schedule(message, number) or store_copies(topic, targets, message.copies, number)
  topic.held = topic.held + stored - message.bytes
  if message.key then
    remember_key(topic, message.key, topic.sequence)
  end
  return number
end

-- store_call stores the messages of a call that are new, and returns what the caller is told.
local function store_call(messages, new)
  if new == #messages then
    local first = text(topic.sequence + 1)
    for _, message in ipairs(messages) do
      store(message)
    end
    return first
  end
  local numbers = { "EACH" }
  for i, message in ipairs(messages) do
    local original = message.original
    if original then
      numbers[i + 1] = text(-(original > 0 and original or find_original(topic, message.key)))
    else
      numbers[i + 1] = store(message)
    end
  end
  return numbers
end

local results, accepted, at = {}, false, 6
while at <= #ARGV do
  local messages
  local count, request = read_request(ARGV[at])
  messages, at = read_call(at + 1, count)
  local refused, load = request and repeat_answer(KEYS[requests], request, now), nil
  if not refused then
    load = load_of(messages)
    refused = refuse(topic, load)
  end
  if refused then
    results[#results + 1] = refused
  else
    reserve(topic, load)
    results[#results + 1] = store_call(messages, load.new)
    accepted = true
    if request then
      save_answer(KEYS[requests], KEYS[requests + 1], request, results[#results], now)
    end
    for i, copies in pairs(load.copies) do
      targets[i].messages = targets[i].messages and targets[i].messages + copies
    end
  end
end
if accepted then
  redis.call("HSET", topic.entity, "sequence", text(topic.sequence), "bytes", text(scheduled_bytes), "most_bytes",
    text(topic.held),
    "accessed_ms", text(now))
elseif topic.held < topic.most_bytes then
  redis.call("HSET", topic.entity, "most_bytes", text(topic.held))
end
if topic.deduplicates then
  forget_old_keys(topic, 100 + 2 * (topic.sequence - first_number))
end
local notifications = close_copies(targets)
return { "OK", write_alarm(topic), notifications, unpack(results) }
