-- send: put messages into a queue (SEND-1, SCHED-1, DUP-1). Several calls share one script: each is stored whole or
-- not at all (BATCH-1), and a refusal does not affect the others.
-- Reads: entity, log length, history.  Writes: all but status and options.
--
-- KEYS[1]  entity         hash    options and state of the queue
-- KEYS[2]  log            stream  messages: id <sequence number>-<size>, one field <enqueued>:<expires> with the
--                                 payload
-- KEYS[3]  expiry         zset    sequence number of unlocked messages by ExpiresAt (ms)
-- KEYS[4]  waiting        zset    sidecar by since when it waits (ms)
-- KEYS[5]  gaps           zset    "<first>-<last>" of numbers above the cursor that are not to be handed out
-- KEYS[6]  scheduled      stream  scheduled messages: id as in log, field <accepted>:<ttl_ms> with the payload, i id, p
--                                 partition
-- KEYS[7]  due            zset    number, 16 digits, of scheduled messages by when they are due (ms)
-- KEYS[8]  scheduled_ids  zset    of scheduled messages: see lib/schedule/scheduled_id.lua
-- KEYS[9]  history        hash    key of a message -> "<accepted>:<number>" (DUP-1)
-- KEYS[10] history_times  zset    key of a message by when it was accepted (ms)
-- KEYS[11..17] sessions   what save_sessions needs, in the order of lib/session/open_target_sessions.lua
-- KEYS[18] chunks         zset    "<first>-<bytes>:<last>:<size>,..." by first, of log entries with several messages
-- KEYS[19..?] requests    hash    if a call has a request id: id -> "<accepted>:<digest>:<seed>:<answer>" (IDEM-1); and
--                                 request_times, zset, ids by when they were accepted (ms)
-- ARGV[1] now             str     "<ms>", 0 = server time, or "<ms>;<level>": see lib/entity/lacks_fence.lua
-- ARGV[2] form            str     what follows: "each"; "keyed": each message has due_ms, message id, partition and
--                                 session before its payload; "chunks"; or "sessions"
-- ARGV[3..] what is sent. In chunks and in sessions: number of messages, their bytes, bytes of the largest one, of the
--         largest call with several, of the largest payload; then in sessions per message its size, session and
--         payload; in chunks per log entry two: of a single message its size and its payload; of a chunk "<messages>
--         <bytes> <size>,... <size>:<length>,...", the lengths of their payloads, and these one after the other behind
--         a byte for the format (docs/decisions/0035).
--         Else per call: count, under a request id as in lib/request/read_request.lua, then per message "<size>" or
--         "<size>:<ttl_ms>", then if keyed "<due_ms>" (0 = at once), id, partition, session, then the payload
--
-- Returns
--   OK  alarm, then, in chunks and in sessions, the number of the first message, which the others follow; else per
--         call the number of its first message, the others follow; or a list, one of
--         EACH number ...            (with the sign turned: a duplicate of that number)
--         AGAIN seed answer          (taken before; the answer is as in lib/request/save_answer.lua)
--         OTHER_MESSAGES             (its request id was taken with other ones)
--         MESSAGE_SIZE_EXCEEDED index actual limit  (index -1: the batch)
--         ENTITY_DISABLED status
--         SESSION_ID_MISSING index
--         PARTITION_KEY_MISMATCH index
--         ENTITY_FULL what actual limit dead_bytes 0
--         QUOTA_EXCEEDED limit
--         INTERNAL
--   NEEDS_EACH         in chunks and in sessions: the messages may not be stored so, or not all be admitted; nothing
--                      was done
--   NEEDS_KEYS         the queue detects duplicates, is partitioned or requires sessions, so the call must be keyed;
--                      nothing was done
--   ENTITY_NOT_FOUND
--   NEEDS_FENCE     level   the caller must wait for that durability; nothing was done
-- Cost: O(messages)
--@include base/now_ms
--@include intake/append_chunks
local now, awaited = now_ms(ARGV[1])
local keyed = ARGV[2] == "keyed"

if ARGV[2] == "chunks" then
  return append_chunks(KEYS[1], KEYS[2], KEYS[4], KEYS[13], KEYS[18], ARGV, now, awaited) or { "NEEDS_EACH" }
end
--@rare
--@include intake/append_in_sessions
if ARGV[2] == "sessions" then
  return append_in_sessions(KEYS, ARGV, now, awaited) or { "NEEDS_EACH" }
end
--@rare
--@include base/text
--@include base/check_key_types
--@include entity/open_target
--@include entity/lacks_fence
--@include intake/load_of_send
--@include intake/refuse
--@include intake/reserve
--@include intake/store_call
--@include intake/append_message
--@include intake/close_target
--@include duplicate/open_history
--@include duplicate/forget_old_keys
--@include request/read_request
--@include request/repeat_answer
--@include request/save_answer
--@include log/size_and_ttl
--@include log/shorter_ttl
--@include log/count_messages
--@include session/open_target_sessions
--@include session/read_sessions_sent
--@include session/append_immortal
--@include schedule/schedule_message
--@include schedule/save_scheduled
local width = keyed and 6 or 2

local target = open_target(KEYS[1], now)
if not target then
  return { "ENTITY_NOT_FOUND" }
end
local refusal = lacks_fence(KEYS[1], target.kind, awaited)
if refusal then
  return refusal
end
if target.keyed and not keyed then
  return { "NEEDS_KEYS" }
end
target.log, target.expiry, target.waiting, target.prefix, target.gaps = KEYS[2], KEYS[3], KEYS[4], "", KEYS[5]
target.scheduled, target.due, target.scheduled_ids = KEYS[6], KEYS[7], KEYS[8]
target.history, target.history_times = KEYS[9], KEYS[10]
target.largest_sent, target.immortal = target.largest, target.default_ttl_ms < 0 and text(now) .. ":0"
if keyed then
  open_history(target)
end
if keyed or #KEYS > 18 then
  local ready_sessions = target.has_sessions and KEYS[13] or KEYS[4] -- without sessions see intake/append_chunks
  check_key_types(
    { KEYS[4], KEYS[3], KEYS[5], KEYS[7], KEYS[8], KEYS[10], KEYS[11], ready_sessions, KEYS[14], KEYS[16], KEYS[17],
      KEYS[#KEYS] },
    { KEYS[9], KEYS[12], KEYS[15], #KEYS > 18 and KEYS[19] or KEYS[9], KEYS[6] }, 4)
else -- all that such messages need
  check_key_types({ KEYS[4], KEYS[3] }, {}, 0)
end
if target.has_sessions then
  open_target_sessions(target, { unpack(KEYS, 11, 17) })
  target.puts = {}
  read_sessions_sent(target, ARGV, 3, width)
end
target.messages = count_messages(target) + redis.call("ZCARD", target.due)

-- store stores the message at a place of a call: for later, for a session, or for receivers.
local function store(load, place)
  local i = load.first + width * (place - 1)
  local is_immortal = target.immortal and tonumber(ARGV[i])
  if is_immortal and target.has_sessions and ARGV[i + 1] == "0" then
    return append_immortal(target, ARGV[i], ARGV[i + 5], ARGV[i + 4])
  end
  local size, ttl_ms = size_and_ttl(ARGV[i])
  local message = { size = size, ttl_ms = shorter_ttl(ttl_ms, target.default_ttl_ms), payload = ARGV[i + width - 1] }
  if keyed then
    message.due_ms, message.id = tonumber(ARGV[i + 1]), ARGV[i + 2]
    message.partition, message.session = ARGV[i + 3], ARGV[i + 4]
    if message.due_ms > now then
      return schedule_message(target, message)
    end
  end
  append_message(target, target, message)
end

local first_number, results, accepted, added, at = target.sequence, {}, false, 0, 3
while at <= #ARGV do
  local count, request = read_request(ARGV[at])
  local answer = request and repeat_answer(KEYS[19], request, now)
  if not answer then
    local load = load_of_send(target, ARGV, at + 1, count, width)
    answer = refuse(target, load)
    if not answer then
      reserve(target, load)
      answer = store_call(target, load, store)
      accepted, added = true, added + load.bytes
      if request then
        save_answer(KEYS[19], KEYS[#KEYS], request, answer, now)
      end
    end
  end
  results[#results + 1] = answer
  at = at + 1 + width * count
end

save_scheduled(target)
if accepted then
  redis.call("HSET", target.entity, "sequence", text(target.sequence), "bytes", text(target.bytes + added),
    "accessed_ms", text(now))
  if target.largest_sent > target.largest then
    redis.call("HSET", target.entity, "largest", text(target.largest_sent))
  end
end
if target.deduplicates then
  forget_old_keys(target, 100 + 2 * (target.sequence - first_number))
end
return { "OK", close_target(target), unpack(results) }
