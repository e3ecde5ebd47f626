-- send: put messages into a queue (SEND-1, SCHED-1, DUP-1). Several calls ride in one: each call is stored whole or not at
-- all (BATCH-1), and one that is refused takes no other with it.
-- Reads: entity, log length, history.  Writes: all but status and options.
--
-- KEYS[1]  entity         hash    options and state of the queue
-- KEYS[2]  log            stream  messages: id <sequence number>-<size>, one field <enqueued>:<expires> with the payload
-- KEYS[3]  expiry         zset    sequence number of unlocked messages by ExpiresAt (ms)
-- KEYS[4]  waiting        zset    sidecar by since when it waits (ms)
-- KEYS[5]  gaps           zset    "<first>-<last>" of numbers above the cursor that are not to be handed out
-- KEYS[6]  scheduled      stream  scheduled messages: id as in log, field <accepted>:<ttl_ms> with the payload, i id, p partition
-- KEYS[7]  due            zset    number, 16 digits, of scheduled messages by when they are due (ms)
-- KEYS[8]  scheduled_ids  zset    "<message id>\0<number, 16 digits>" of scheduled messages
-- KEYS[9]  history        hash    key of a message -> "<accepted>:<number>" (DUP-1)
-- KEYS[10] history_times  zset    key of a message by when it was accepted (ms)
-- KEYS[11..17] sessions   what close_sessions needs, in the order of lib/open_target_sessions.lua
-- ARGV[1] now             int     0 = server time
-- ARGV[2] keyed           int     1: each message has due_ms, message id, partition and session before its payload
-- ARGV[3..] per call: count, then per message "<size>" or "<size>:<ttl_ms>", then if keyed "<due_ms>" (0 = at once), id,
--           partition, session, then the payload
--
-- Returns
--   OK  alarm, then per call the number of its first message, the others follow; or a list, one of
--         EACH number ...            (with the sign turned: a duplicate of that number)
--         MESSAGE_SIZE_EXCEEDED index actual limit  (index -1: the batch)
--         ENTITY_DISABLED status
--         SESSION_ID_MISSING index
--         PARTITION_KEY_MISMATCH
--         ENTITY_FULL what actual limit dead_bytes
--         QUOTA_EXCEEDED limit
--         INTERNAL
--   NEEDS_KEYS         the queue detects duplicates, is partitioned or requires sessions, so the call must be keyed; nothing was done
--   ENTITY_NOT_FOUND
-- Cost: O(messages)
--@include now_ms
--@include text
--@include open_target
--@include open_history
--@include can_send
--@include history_key
--@include history_room
--@include remembered
--@include remember
--@include forget_old
--@include lifetime
--@include size_and_ttl
--@include shorter_ttl
--@include keep_alarm
--@include add_gap
--@include expect
--@include open_target_sessions
--@include append_to_session
--@include read_sessions
--@include close_sessions
--@include wake_next
--@include call_forwarder
local log, expiry, waiting, scheduled, due, scheduled_ids = KEYS[2], KEYS[3], KEYS[4], KEYS[6], KEYS[7], KEYS[8]
local now, keyed = now_ms(ARGV[1]), ARGV[2] == "1"

local target = open_target(KEYS[1], now)
if not target then
  return { "ENTITY_NOT_FOUND" }
end
if target.keyed and not keyed then
  return { "NEEDS_KEYS" }
end
target.prefix, target.gaps, target.history, target.history_times = "", KEYS[5], KEYS[9], KEYS[10]
if keyed then
  open_history(target)
end
if target.has_sessions then
  open_target_sessions(target, { unpack(KEYS, 11, 17) })
  target.puts = {}
end
local width = keyed and 6 or 2
local default_ttl_ms = target.default_ttl_ms
local sequence, bytes, messages = target.sequence, target.bytes, redis.call("XLEN", log) + redis.call("ZCARD", due)

-- none stands for the duplicates of calls without any.
local none = {}

-- duplicates finds which messages of a call are not to be stored: position in the call -> number of the original, or 0
-- for one of the same call, whose key it also gives.
local function duplicates(first, last)
  if not target.deduplicates then
    return none, none
  end
  local found, keys, new = {}, {}, {}
  for i = first, last, width do
    local key = history_key(target.partitioned, ARGV[i + 2], ARGV[i + 3])
    keys[i] = key
    found[i] = new[key] and 0 or remembered(target, key)
    new[key] = true
  end
  return found, keys
end

-- sizes_of adds up a call: the index and size of its first message that is too large, or nil, then the bytes of all, and
-- bytes and number of those that are to be stored.
local max_message_bytes, largest = target.max_message_bytes, target.largest
local function sizes_of(first, last, found)
  local total, stored, new = 0, 0, 0
  for i = first, last, width do
    local size = tonumber(ARGV[i]) or tonumber((size_and_ttl(ARGV[i])))
    if size > max_message_bytes then
      return (i - first) / width, size
    end
    if size > largest then
      largest = size
    end
    total = total + size
    if not found[i] then
      stored, new = stored + size, new + 1
    end
  end
  return nil, total, stored, new
end

-- refusal gives the reason why a call cannot be stored, or nil, its bytes and its messages when it can.
local function refusal(first, last, found)
  local too_large, total, stored, new = sizes_of(first, last, found)
  if too_large then
    return { "MESSAGE_SIZE_EXCEEDED", too_large, total, max_message_bytes }
  end
  if last > first + width and total > target.max_batch_bytes then
    return { "MESSAGE_SIZE_EXCEEDED", -1, total, target.max_batch_bytes }
  end
  if not can_send(target.status) then
    return { "ENTITY_DISABLED", target.status }
  end
  if target.has_sessions then
    for i = first, last, width do
      if ARGV[i + 4] == "" then
        return { "SESSION_ID_MISSING", (i - first) / width }
      end
    end
  end
  if target.partitioned then
    for i = first + width, last, width do
      if ARGV[i + 3] ~= ARGV[first + 3] then
        return { "PARTITION_KEY_MISMATCH" }
      end
    end
  end
  local others = target.dead_bytes + target.state_bytes
  if bytes + others + stored > target.max_bytes and new > 0 then
    return { "ENTITY_FULL", "bytes", bytes + others + stored, target.max_bytes, target.dead_bytes }
  end
  if target.max_message_count > 0 and messages + new > target.max_message_count and new > 0 then
    return { "ENTITY_FULL", "messages", messages + new, target.max_message_count, target.dead_bytes }
  end
  if target.deduplicates and new > 0 and new > history_room(target) then
    return { "QUOTA_EXCEEDED", target.duplicate_max_entries }
  end
  if sequence + new > 9007199254740991 then
    return { "INTERNAL" }
  end
  return nil, stored, new
end

-- schedule stores a message that is to be enqueued later. Its number is none to hand out.
local function schedule(number, size, ttl_ms, due_ms, id, partition, session, payload)
  local member = string.format("%016d", number)
  local entry_id, times = number .. "-" .. size, text(now) .. ":" .. text(ttl_ms)
  if target.has_sessions then
    redis.call("XADD", scheduled, entry_id, times, payload, "i", id, "p", partition, "s", session)
    put_in_session(target, session, "s", number)
    session_record(target, session).activity = now
  else
    redis.call("XADD", scheduled, entry_id, times, payload, "i", id, "p", partition)
    add_gap(target.entity, target, tonumber(number), tonumber(number))
  end
  redis.call("ZADD", due, due_ms, member)
  redis.call("ZADD", scheduled_ids, 0, id .. "\0" .. member)
  expect(target, due_ms)
end

local immortal = default_ttl_ms < 0 and text(now) .. ":0"

-- append stores the common message of a session, in the fewest steps.
local function append(number, i)
  local session, puts = ARGV[i + 4], target.puts
  local record = target.records[session]
  record.sequence, record.activity = record.sequence + 1, now
  redis.call("XADD", log, number .. "-" .. ARGV[i], immortal, ARGV[i + 5], "s", session, "q", text(record.sequence))
  puts[#puts + 1], puts[#puts + 2] = 0, session_member(session, "a", number)
  target.touched[session] = target.touched[session] or "added"
end

-- store stores one message, i being where it begins in ARGV. Returns 1 when it can be received now, else 0.
local function store(number, i)
  local size, times, payload = ARGV[i], immortal, ARGV[i + width - 1]
  if not tonumber(size) or not immortal or keyed then
    local own_size, ttl_ms = size_and_ttl(size)
    ttl_ms = shorter_ttl(ttl_ms, default_ttl_ms)
    if keyed and tonumber(ARGV[i + 1]) > now then
      schedule(number, own_size, ttl_ms, tonumber(ARGV[i + 1]), ARGV[i + 2], ARGV[i + 3], ARGV[i + 4], payload)
      return 0
    end
    local expires
    times, expires = lifetime(now, ttl_ms)
    size = own_size
    if expires then
      redis.call("ZADD", expiry, expires, number)
      expect(target, tonumber(expires))
    end
  end
  if target.has_sessions then
    append_to_session(target, log, number, size, times, payload, ARGV[i + 4])
    return 0 -- whether it can be had is up to its session
  end
  redis.call("XADD", log, number .. "-" .. size, times, payload)
  return 1
end

if target.has_sessions then
  local sessions, seen, first = {}, {}, 3
  while first <= #ARGV do
    local last = first + width * ARGV[first]
    for i = first + 5, last, width do
      if not seen[ARGV[i]] then
        seen[ARGV[i]], sessions[#sessions + 1] = true, ARGV[i]
      end
    end
    first = last + 1
  end
  read_sessions(target, sessions)
end

local results, accepted, came, at = {}, false, 0, 3
while at <= #ARGV do
  local count = tonumber(ARGV[at])
  local first, last = at + 1, at + width * count
  local found, keys = duplicates(first, last)
  local refused, stored, new = refusal(first, last, found)
  if refused then
    results[#results + 1] = refused
  elseif new == count then
    results[#results + 1] = text(sequence + 1)
    for i = first, last, width do
      sequence = sequence + 1
      if immortal and target.has_sessions and ARGV[i + 1] == "0" and tonumber(ARGV[i]) then
        append(text(sequence), i)
      elseif immortal and not keyed and tonumber(ARGV[i]) then -- the common message, in the fewest steps
        redis.call("XADD", log, string.format("%d-%s", sequence, ARGV[i]), immortal, ARGV[i + 1])
        came = came + 1
      else
        came = came + store(text(sequence), i)
      end
      if keys[i] then
        remember(target, keys[i], sequence)
      end
    end
  else
    local numbers = { "EACH" }
    for i = first, last, width do
      local original = found[i]
      if original then
        numbers[#numbers + 1] = text(-(original > 0 and original or remembered(target, keys[i])))
      else
        sequence = sequence + 1
        came = came + store(text(sequence), i)
        remember(target, keys[i], sequence)
        numbers[#numbers + 1] = text(sequence)
      end
    end
    results[#results + 1] = numbers
  end
  if not refused then
    accepted, bytes, messages = true, bytes + stored, messages + new
  end
  at = last + 1
end
if accepted then
  redis.call("HSET", target.entity, "sequence", text(sequence), "bytes", text(bytes), "accessed_ms", text(now))
  if largest > target.largest then
    redis.call("HSET", target.entity, "largest", text(largest))
  end
end
if target.deduplicates then
  forget_old(target, 100 + 2 * (sequence - target.sequence))
end
if target.has_sessions then
  came = close_sessions(target)
end
local alarm = keep_alarm(target)
if came > 0 then
  wake_next(waiting, came)
  if target.forwards then
    alarm = call_forwarder(target, alarm)
  end
end
return { "OK", alarm, unpack(results) }
