-- arrive_in_topic: as arrive, for a topic: store copies of what a transfer carries in its subscriptions (FWD-1,
-- TOPIC-1). The routes of one version decided which copies there are; with other routes nothing is done.
-- Reads: topic, arrivals, history, entity of every subscription.  Writes: topic, arrivals, history, subscriptions that
-- get copies.
--
-- KEYS[1] topic          hash    options and state of the topic
-- KEYS[2] arrivals       hash    source -> its last transfer that has arrived: see arrive
-- KEYS[3] history        hash    key of a message -> "<accepted>:<number>" (DUP-1)
-- KEYS[4] history_times  zset    key of a message by when it was accepted (ms)
-- KEYS[5] bodies         hash    as in publish
-- KEYS[6] body_uses      hash    as in publish
-- KEYS[7..?] others      -       as in publish: if the caller was told NEEDS_ALL, the entity of the topic and of every
--                                subscription; then for each subscription that gets copies what its letter in levels
--                                says
-- ARGV[1] now          str  "<ms>", 0 = server time, or "<ms>;<level>": see lib/entity/lacks_fence.lua
-- ARGV[2] incarnation  int  of the topic, -1 = any
-- ARGV[3] source       str  field of arrivals
-- ARGV[4] id           str  "<number>:<nonce>" of the transfer
-- ARGV[5] last         str  "0": do nothing if not every message can be stored, else "1"; behind it the places of those
--                           that are carried, if not all of the transfer are: see lib/transfer/note_arrival.lua
-- ARGV[6] version      int  of the routes
-- ARGV[7] bytes        int  of all copies, at most
-- ARGV[8] all          int  number of keys given for NEEDS_ALL
-- ARGV[9] levels       str  see lib/topic/open_copies.lua
-- ARGV[10..] per message size, when it ends at the latest (ms, 0 = no bound), id ("" = not compared), partition,
--         bytes of its copies, and its copies as in lib/topic/read_copies.lua
--
-- Returns
--   OK                alarm notifications outcomes    notifications: of subscriptions, see lib/topic/close_copies.lua
--   NOT_YET           nothing was done, as with the following
--   OVERTAKEN         number, as in arrive
--   ROUTES_CHANGED
--   NEEDS_KEYS        subscription letter ...  which of them need more keys
--   NEEDS_ALL         the topic may be full: its size must be added up
--   ENTITY_NOT_FOUND  the topic of that incarnation is gone for ever
--   NEEDS_FENCE     level   the caller must wait for that durability; nothing was done
-- Cost: O(messages + copies log N), and O(subscriptions) where the topic may be full
--@include base/now_ms
--@include base/text
--@include entity/open_topic
--@include entity/lacks_fence
--@include topic/open_copies
--@include topic/count_copies
--@include topic/full_subscription
--@include topic/reserve_copies
--@include topic/too_many_copies
--@include topic/store_copies
--@include topic/close_copies
--@include entity/held_bytes
--@include transfer/arrived_before
--@include transfer/read_forwarded
--@include transfer/note_arrival
--@include intake/refuse
--@include intake/reserve
--@include transfer/outcome_letter
--@include duplicate/find_original
--@include duplicate/remember_key
--@include duplicate/forget_old_keys
--@include due/write_alarm
local arrivals, levels = KEYS[2], ARGV[9]
local now, awaited = now_ms(ARGV[1])
local incarnation, source, id = ARGV[2], ARGV[3], ARGV[4]
local last, places = string.sub(ARGV[5], 1, 1) == "1", string.sub(ARGV[5], 2)
local version, bytes, all = ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8])

local topic = open_topic(KEYS[1], now)
if not topic or incarnation ~= "-1" and redis.call("HGET", KEYS[1], "incarnation") ~= incarnation then
  return { "ENTITY_NOT_FOUND" }
end
-- On one server nothing waits: it has the arrival before the removal at the source.
local refusal = awaited and lacks_fence(KEYS[1], "topic", awaited)
if refusal then
  return refusal
end
local before, overtaken_by = arrived_before(arrivals, source, id)
if before then
  return { "OK", "0", {}, before }
end
if overtaken_by then
  return { "OVERTAKEN", overtaken_by }
end
if topic.version ~= version then
  return { "ROUTES_CHANGED" }
end
topic.history, topic.history_times = KEYS[3], KEYS[4]
redis.call("HLEN", topic.history) -- as in lib/base/check_key_types
redis.call("ZCARD", topic.history_times)
topic.bodies, topic.body_uses = KEYS[5], KEYS[6]
redis.call("HLEN", topic.bodies)
redis.call("HLEN", topic.body_uses)
local targets, needs = open_copies(levels, KEYS, 7 + all, now)
if needs then
  return { "NEEDS_KEYS", unpack(needs) }
end
topic.held = topic.most_bytes
if topic.held + bytes > topic.max_bytes then
  if all == 0 then
    return { "NEEDS_ALL" }
  end
  topic.held = held_bytes(KEYS, 7, 6 + all)
end

local seen = {} -- keys of messages before, which are not in the history yet

-- decide returns the outcome of the next message. A duplicate arrives, but nothing of it is stored (DUP-9).
local function decide(message)
  message.is_known = message.key and (seen[message.key] or find_original(topic, message.key)) and true or false
  local new, counts = message.is_known and 0 or 1, {}
  count_copies(counts, message.copies)
  local load = {
    count = 1, total = message.bytes, new = new, bytes = new * message.copied, counted = new,
    keys = message.key and new or 0,
    too_large = message.bytes > topic.max_message_bytes or too_many_copies(topic, message.copies.count, message.copied),
    unmatched = new == 1 and topic.fails_unmatched and message.copies.text == "",
    full = full_subscription(targets, counts),
  }
  local refused = refuse(topic, load)
  if refused then
    return outcome_letter(refused)
  end
  reserve(topic, load)
  if not message.is_known then
    reserve_copies(targets, counts)
  end
  if message.key then
    seen[message.key] = true
  end
  return outcome_letter(nil)
end

local messages, letters = read_forwarded(topic, ARGV, 10), {}
for i, message in ipairs(messages) do
  letters[i] = decide(message)
  if letters[i] ~= "." and not last then
    return { "NOT_YET" }
  end
end
for i, message in ipairs(messages) do
  if letters[i] == "." and not message.is_known then
    topic.sequence = topic.sequence + 1
    topic.held = topic.held + store_copies(topic, targets, message.copies, text(topic.sequence)) - message.copied
    if message.key then
      remember_key(topic, message.key, topic.sequence)
    end
  end
end
redis.call("HSET", topic.entity, "sequence", text(topic.sequence), "most_bytes", text(topic.held))
if topic.deduplicates then
  forget_old_keys(topic, 100 + 2 * #messages)
end
local outcomes = note_arrival(arrivals, source, id, now, letters, places)
return { "OK", write_alarm(topic), close_copies(topic, targets), outcomes }
