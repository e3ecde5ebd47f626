-- arrive: store what a transfer carries in its destination queue, once however often the script runs, and each message
-- as if it was sent alone (FWD-1, FWD-4, FWD-8). One without a session becomes a dead letter of a queue with sessions
-- (DLQ-9).
-- Reads: all, arrivals.  Writes: all, arrivals.
--
-- KEYS[1..41] queue  all keys of the queue, in the order of lib/entity/open_queue.lua
-- KEYS[42] arrivals  hash  source -> "<number>:<nonce>:<ms>:<outcomes>" of its last transfer that has arrived: see
--                          lib/transfer/note_arrival.lua
-- ARGV[1] now          str  "<ms>", 0 = server time, or "<ms>;<level>": see lib/entity/lacks_fence.lua
-- ARGV[2] incarnation  int  of the queue, -1 = any
-- ARGV[3] source       str  field of arrivals
-- ARGV[4] id           str  "<number>:<nonce>" of the transfer
-- ARGV[5] last         str  "0": do nothing if not every message can be stored, else "1"; behind it the places of those
--                           that are carried, if not all of the transfer are: see lib/transfer/note_arrival.lua
-- ARGV[6] how          str  of dead letters that are resubmitted "r", and "b" with it if duplicate detection does not
--                           apply (DLQ-22); else ""
-- ARGV[7..] per message "<size>" or "<size>:<ttl_ms>", when it ends at the latest (ms, 0 = no bound), id, partition,
--         session, payload
--
-- Returns
--   OK                notifications outcomes number ...  number: of a message that is resubmitted, that of its
--                       original with the sign turned if it is a duplicate, 0 if it is refused; none if this arrived
--                       before
--   NOT_YET           nothing was done
--   OVERTAKEN         number  another transfer, of that number, not lower, was the last to arrive: nothing was done
--   ENTITY_NOT_FOUND  there is no queue, or that of the incarnation is gone for ever
--   NEEDS_FENCE     level   the caller must wait for that durability; nothing was done
-- Cost: O(messages log N)
--@include base/now_ms
--@include base/text
--@include entity/open_queue
--@include entity/open_target
--@include entity/lacks_fence
--@include duplicate/open_history
--@include entity/close_queue
--@include entity/touch
--@include transfer/arrived_before
--@include transfer/note_arrival
--@include intake/refuse
--@include intake/reserve
--@include intake/append_message
--@include intake/raise_largest
--@include transfer/outcome_letter
--@include duplicate/history_key
--@include duplicate/history_capacity
--@include duplicate/find_original
--@include duplicate/remember_key
--@include duplicate/forget_old_keys
--@include log/lifetime
--@include log/size_and_ttl
--@include log/shorter_ttl
--@include log/count_messages
--@include dead_letter/dead_letter_incoming
local arrivals = KEYS[42]
local now, awaited = now_ms(ARGV[1])
local incarnation, source, id = ARGV[2], ARGV[3], ARGV[4]
local last, places = string.sub(ARGV[5], 1, 1) == "1", string.sub(ARGV[5], 2)
local resubmits, detects = string.find(ARGV[6], "r") ~= nil, not string.find(ARGV[6], "b")

local target = open_target(KEYS[1], now)
if not target or incarnation ~= "-1" and redis.call("HGET", KEYS[1], "incarnation") ~= incarnation then
  return { "ENTITY_NOT_FOUND" }
end
-- On one server nothing waits: it has the arrival before the removal at the source.
local refusal = awaited and lacks_fence(KEYS[1], target.kind, awaited)
if refusal then
  return refusal
end
local before, overtaken_by = arrived_before(arrivals, source, id)
if before then
  return { "OK", "0", before }
end
if overtaken_by then
  return { "OVERTAKEN", overtaken_by }
end
local queue = open_queue(KEYS, now)
open_history(queue)
target.messages = count_messages(queue.main) + redis.call("ZCARD", queue.due)
target.free_keys = queue.deduplicates and history_capacity(queue) or nil

local messages = {}
for i = 7, #ARGV, 6 do
  local size, ttl_ms = size_and_ttl(ARGV[i])
  local ends_ms = tonumber(ARGV[i + 1])
  messages[#messages + 1] = {
    size = size, bytes = tonumber(size), ttl_ms = shorter_ttl(ttl_ms, target.default_ttl_ms),
    ends_ms = ends_ms > 0 and ends_ms or nil,
    session = ARGV[i + 4], payload = ARGV[i + 5],
    key = queue.deduplicates and detects and history_key(queue.partitioned, ARGV[i + 2], ARGV[i + 3]) or nil,
    is_lost = not resubmits and queue.has_sessions and ARGV[i + 4] == "",
    without_session = resubmits and queue.has_sessions and ARGV[i + 4] == "",
  }
end

local seen = {}

-- decide returns the outcome of a message, those before it having got theirs. Of a duplicate nothing is stored (DUP-9).
local function decide(message)
  message.twin = message.key and seen[message.key] or nil
  message.original = message.key and not message.twin and find_original(queue, message.key) or nil
  message.is_known = message.twin ~= nil or message.original ~= nil
  local new = message.is_known and 0 or 1
  local load = {
    count = 1, total = message.bytes, too_large = message.bytes > target.max_message_bytes, new = new,
    bytes = new * message.bytes,
    counted = message.is_lost and 0 or new, keys = message.key and new or 0, without_session = message.without_session,
  }
  local refused = refuse(target, load)
  if not refused then
    reserve(target, load)
    if message.key and not message.is_known then
      seen[message.key] = message
    end
  end
  return outcome_letter(refused)
end

local letters = {}
for i, message in ipairs(messages) do
  letters[i] = decide(message)
  if letters[i] ~= "." and not last then
    return { "NOT_YET" }
  end
end

-- dead_letter_lost stores a message without a session among the dead letters.
local function dead_letter_lost(message)
  local why = { cause = "s", reason = "Session ID is null", description = "the queue requires a session id" }
  queue.main.sequence = queue.main.sequence + 1
  local times = lifetime(now, message.ttl_ms, message.ends_ms)
  dead_letter_incoming(queue, text(queue.main.sequence), times, message, nil, why)
end

local added = 0
for i, message in ipairs(messages) do
  if letters[i] == "." and not message.is_known then
    raise_largest(queue, #message.payload)
    if message.is_lost then
      dead_letter_lost(message)
    else
      append_message(queue, queue.main, message)
      added = added + message.bytes
    end
    message.number = queue.main.sequence
    if message.key then
      remember_key(queue, message.key, message.number)
    end
  elseif letters[i] == "." then
    message.number = -(message.original or message.twin.number)
  end
end
redis.call("HSET", queue.entity, "sequence", text(queue.main.sequence), "bytes", text(target.bytes + added))
if queue.deduplicates then
  forget_old_keys(queue, 100 + 2 * #messages)
end
local outcomes, numbers = note_arrival(arrivals, source, id, now, letters, places), {}
if resubmits then
  for i, message in ipairs(messages) do
    numbers[i] = text(message.number or 0)
  end
  if string.find(table.concat(letters), ".", 1, true) then
    touch(queue.entity, now) -- as a send does
  end
end
return { "OK", close_queue(queue), outcomes, unpack(numbers) }
