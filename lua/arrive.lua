-- arrive: store what a transfer carries in the queue that it is for, once however often it is repeated, and each message as if it was sent
-- alone (FWD-1, FWD-4, FWD-8). One without a session becomes a dead letter of a queue with sessions (DLQ-9).
-- Reads: all, arrivals.  Writes: all, arrivals.
--
-- KEYS[1..36] queue  all keys of the queue, in the order of lib/open_queue.lua
-- KEYS[37] arrivals  hash  source -> "<number>:<ms>:<outcomes>" of its last transfer that has arrived: see lib/note_arrival.lua
-- ARGV[1] now          int  0 = server time
-- ARGV[2] incarnation  int  of the queue
-- ARGV[3] source       str  field of arrivals
-- ARGV[4] number       int  of the transfer
-- ARGV[5] last         int  0: do nothing if not every message can be stored
-- ARGV[6..] per message "<size>" or "<size>:<ttl_ms>", when it ends at the latest (ms, 0 = whenever), id, partition,
--           session, payload
--
-- Returns
--   OK                news outcomes
--   NOT_YET           nothing was done
--   ENTITY_NOT_FOUND  there is no queue of that incarnation, nor will there ever be
-- Cost: O(messages log N)
--@include now_ms
--@include text
--@include open_queue
--@include open_target
--@include open_history
--@include close_queue
--@include arrived_before
--@include note_arrival
--@include can_send
--@include history_key
--@include history_room
--@include remembered
--@include remember
--@include forget_old
--@include lifetime
--@include size_and_ttl
--@include shorter_ttl
--@include expect
--@include append_to_session
--@include bury_copy
local arrivals = KEYS[37]
local now, incarnation, source, number, last = now_ms(ARGV[1]), ARGV[2], ARGV[3], ARGV[4], ARGV[5] == "1"

local target = open_target(KEYS[1], now)
if not target or redis.call("HGET", KEYS[1], "incarnation") ~= incarnation then
  return { "ENTITY_NOT_FOUND" }
end
local before = arrived_before(arrivals, source, number)
if before then
  return { "OK", "0", before }
end
local queue = open_queue(KEYS, now)
open_history(queue)
local messages = {}
for i = 6, #ARGV, 6 do
  local size, ttl_ms = size_and_ttl(ARGV[i])
  messages[#messages + 1] = {
    size = size, bytes = tonumber(size), ttl_ms = ttl_ms, ends_ms = tonumber(ARGV[i + 1]), session = ARGV[i + 4], payload = ARGV[i + 5],
    key = queue.deduplicates and history_key(queue.partitioned, ARGV[i + 2], ARGV[i + 3]) or nil,
    is_lost = queue.has_sessions and ARGV[i + 4] == "",
  }
end

local bytes = target.bytes + target.dead_bytes + target.state_bytes
local count, room = redis.call("XLEN", queue.main.log) + redis.call("ZCARD", queue.due), queue.deduplicates and history_room(queue)
local seen = {}

-- decide gives the outcome of a message, those before it having got theirs. Of a duplicate nothing is stored (DUP-9).
local function decide(message)
  if message.bytes > target.max_message_bytes then
    return "s"
  end
  if not can_send(target.status) then
    return "d"
  end
  if message.key and (seen[message.key] or remembered(queue, message.key)) then
    message.is_known = true
    return "."
  end
  local many = target.max_message_count > 0 and count >= target.max_message_count and not message.is_lost
  if bytes + message.bytes > target.max_bytes or many then
    return "f"
  end
  if message.key and room < 1 then
    return "q"
  end
  bytes, count = bytes + message.bytes, count + (message.is_lost and 0 or 1)
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

local main, sequence, added = queue.main, queue.main.sequence, 0
local function store(message)
  local times, expires = lifetime(now, shorter_ttl(message.ttl_ms, target.default_ttl_ms), message.ends_ms > 0 and message.ends_ms or nil)
  sequence = sequence + 1
  local position = text(sequence)
  if message.key then
    remember(queue, message.key, sequence)
  end
  if message.bytes > queue.largest then
    queue.largest = message.bytes
    redis.call("HSET", queue.entity, "largest", message.size)
  end
  if message.is_lost then
    bury_copy(queue, position, times, message, nil, {
      cause = "s", reason = "Session ID is null", description = "the queue requires a session id",
    })
    return
  end
  if queue.has_sessions then
    append_to_session(queue, main.log, position, message.size, times, message.payload, message.session)
  else
    redis.call("XADD", main.log, position .. "-" .. message.size, times, message.payload)
    main.came = main.came + 1
  end
  if expires then
    redis.call("ZADD", main.expiry, expires, position)
    expect(queue, tonumber(expires))
  end
  added = added + message.bytes
end

for i, message in ipairs(messages) do
  if letters[i] == "." and not message.is_known then
    store(message)
  end
end
main.sequence = sequence
redis.call("HSET", queue.entity, "sequence", text(sequence), "bytes", text(target.bytes + added))
if queue.deduplicates then
  forget_old(queue, 100 + 2 * #messages)
end
local outcomes = note_arrival(arrivals, source, number, now, letters)
return { "OK", close_queue(queue), outcomes }
