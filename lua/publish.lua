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
-- KEYS[7] bodies         hash    number of a message -> its body, of those that several copies share
-- KEYS[8] body_uses      hash    number of the first message of a group of bodies -> see lib/topic/store_group.lua
-- KEYS[9..?] others      -       if the caller was told NEEDS_ALL, the entity of the topic and of every subscription;
--                                then for each subscription that gets copies what its letter in levels says; and at the
--                                end, if a call has a request id, requests and request_times as in send (IDEM-1)
-- ARGV[1] now      str  "<ms>", 0 = server time, or "<ms>;<level>": see lib/entity/lacks_fence.lua
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
--         PARTITION_KEY_MISMATCH index
--         ENTITY_FULL what actual limit dead_bytes subscription  (0: the topic)
--         QUOTA_EXCEEDED limit
--         NO_MATCHING_SUBSCRIPTION index
--         INTERNAL
--       notifications: of subscriptions, see lib/topic/close_copies.lua
--   ROUTES_CHANGED     nothing was done, as with the following
--   NEEDS_KEYS         subscription letter ...  which of them need more keys
--   NEEDS_ALL          the topic may be full: its size must be added up
--   ENTITY_NOT_FOUND
--   NEEDS_FENCE     level   the caller must wait for that durability; nothing was done
-- Cost: O(messages + copies log N), and O(subscriptions) where the topic may be full
--@include base/now_ms
--@include base/text
--@include entity/open_topic
--@include entity/lacks_fence
--@include topic/open_copies
--@include topic/read_publications
--@include topic/load_of_publish
--@include topic/reserve_copies
--@include topic/store_copies
--@include topic/close_copies
--@include entity/held_bytes
--@include intake/refuse
--@include intake/reserve
--@include intake/store_call
--@include intake/raise_largest
--@include request/read_request
--@include request/repeat_answer
--@include request/save_answer
--@include duplicate/forget_old_keys
--@include due/write_alarm
--@include schedule/schedule_message
--@include schedule/save_scheduled
local now, awaited = now_ms(ARGV[1])
local version, bytes, all, levels = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]

local topic = open_topic(KEYS[1], now)
if not topic then
  return { "ENTITY_NOT_FOUND" }
end
local refusal = (awaited or topic.is_fenced) and lacks_fence(KEYS[1], "topic", awaited)
if refusal then
  return refusal
end
if topic.version ~= version then
  return { "ROUTES_CHANGED" }
end
topic.scheduled, topic.due, topic.scheduled_ids = KEYS[2], KEYS[3], KEYS[4]
topic.history, topic.history_times = KEYS[5], KEYS[6]
topic.bodies, topic.body_uses = KEYS[7], KEYS[8]
local targets, needs, requests = open_copies(levels, KEYS, 9 + all, now)
if needs then
  return { "NEEDS_KEYS", unpack(needs) }
end
-- As in lib/base/check_key_types. A message that goes to one subscription shares no body.
if #targets > 1 then
  redis.call("HLEN", topic.bodies)
  redis.call("HLEN", topic.body_uses)
end
if redis.call("EXISTS", KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], unpack(KEYS, requests, #KEYS)) > 0 then
  redis.call("XLEN", topic.scheduled)
  for _, hash in ipairs({ topic.history, KEYS[requests] }) do
    redis.call("HLEN", hash)
  end
  for _, set in ipairs({ topic.due, topic.scheduled_ids, topic.history_times, KEYS[requests + 1] }) do
    redis.call("ZCARD", set)
  end
end
topic.held, topic.dead_bytes = topic.most_bytes, 0
if topic.held + bytes > topic.max_bytes then
  if all == 0 then
    return { "NEEDS_ALL" }
  end
  topic.held, topic.dead_bytes = held_bytes(KEYS, 9, 8 + all)
end
local is_bounded, first_number, scheduled_bytes = false, topic.sequence, topic.bytes
for _, target in ipairs(targets) do
  is_bounded = is_bounded or target.messages ~= nil
end

-- store stores the message at a place of a call: for later, by the rules of that time (SCHED-7), or its copies.
local function store(load, place)
  local message = load.messages[place]
  if message.waits then
    schedule_message(topic, message)
    scheduled_bytes = scheduled_bytes + message.bytes
    return raise_largest(topic, #message.payload)
  end
  topic.sequence = topic.sequence + 1
  local stored = store_copies(topic, targets, message.copies, text(topic.sequence))
  topic.held = topic.held + stored - message.bytes -- less by what was dropped for it
end

local results, accepted, at = {}, false, 6
while at <= #ARGV do
  local messages
  local count, request = read_request(ARGV[at])
  messages, at = read_publications(topic, ARGV, at + 1, count)
  local answer = request and repeat_answer(KEYS[requests], request, now)
  if not answer then
    local load = load_of_publish(topic, targets, messages, is_bounded)
    answer = refuse(topic, load)
    if not answer then
      reserve(topic, load)
      reserve_copies(targets, load.copies)
      answer, accepted = store_call(topic, load, store), true
      if request then
        save_answer(KEYS[requests], KEYS[requests + 1], request, answer, now)
      end
    end
  end
  results[#results + 1] = answer
end

save_scheduled(topic)
if accepted then
  redis.call("HSET", topic.entity, "sequence", text(topic.sequence), "bytes", text(scheduled_bytes), "most_bytes",
    text(topic.held), "accessed_ms", text(now))
elseif topic.held < topic.most_bytes then
  redis.call("HSET", topic.entity, "most_bytes", text(topic.held))
end
if topic.deduplicates then
  forget_old_keys(topic, 100 + 2 * (topic.sequence - first_number))
end
local notifications = close_copies(topic, targets)
return { "OK", write_alarm(topic), notifications, unpack(results) }
