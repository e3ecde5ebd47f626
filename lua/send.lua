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
-- KEYS[18..?] requests    hash    if a call has a request id: id -> "<accepted>:<digest>:<seed>:<answer>" (IDEM-1); and
--                                 request_times, zset, ids by when they were accepted (ms)
-- ARGV[1] now             int     0 = server time
-- ARGV[2] keyed           int     1: each message has due_ms, message id, partition and session before its payload
-- ARGV[3..] per call: count, under a request id as in lib/request/read_request.lua, then per message "<size>" or
--         "<size>:<ttl_ms>", then if keyed "<due_ms>" (0 = at once), id, partition, session, then the payload
--
-- Returns
--   OK  alarm, then per call the number of its first message, the others follow; or a list, one of
--         EACH number ...            (with the sign turned: a duplicate of that number)
--         AGAIN seed answer          (taken before; the answer is as in lib/request/save_answer.lua)
--         OTHER_MESSAGES             (its request id was taken with other ones)
--         MESSAGE_SIZE_EXCEEDED index actual limit  (index -1: the batch)
--         ENTITY_DISABLED status
--         SESSION_ID_MISSING index
--         PARTITION_KEY_MISMATCH
--         ENTITY_FULL what actual limit dead_bytes 0
--         QUOTA_EXCEEDED limit
--         INTERNAL
--   NEEDS_KEYS         the queue detects duplicates, is partitioned or requires sessions, so the call must be keyed;
--                      nothing was done
--   ENTITY_NOT_FOUND
-- Cost: O(messages)
--@include base/now_ms
--@include base/check_key_types
--@include base/text
--@include base/in_pieces
--@include entity/open_target
--@include intake/refuse
--@include intake/reserve
--@include intake/append_message
--@include intake/close_target
--@include duplicate/open_history
--@include duplicate/history_key
--@include duplicate/match_history
--@include duplicate/find_original
--@include duplicate/remember_key
--@include duplicate/forget_old_keys
--@include request/read_request
--@include request/repeat_answer
--@include request/save_answer
--@include log/size_and_ttl
--@include log/shorter_ttl
--@include due/expect
--@include available/add_gap
--@include session/open_target_sessions
--@include session/put_in_session
--@include session/session_record
--@include session/session_member
--@include session/read_sessions
--@include schedule/scheduled_id
local scheduled, due, scheduled_ids = KEYS[6], KEYS[7], KEYS[8]
local now, keyed = now_ms(ARGV[1]), ARGV[2] == "1"

local target = open_target(KEYS[1], now)
if not target then
  return { "ENTITY_NOT_FOUND" }
end
if target.keyed and not keyed then
  return { "NEEDS_KEYS" }
end
target.log, target.expiry, target.waiting, target.prefix, target.gaps = KEYS[2], KEYS[3], KEYS[4], "", KEYS[5]
target.history, target.history_times = KEYS[9], KEYS[10]
if keyed then
  open_history(target)
end
if target.has_sessions then
  open_target_sessions(target, { unpack(KEYS, 11, 17) })
  target.puts = {}
end
if keyed or #KEYS > 17 then
  check_key_types(
    { KEYS[4], KEYS[3], KEYS[5], due, scheduled_ids, KEYS[10], KEYS[11], KEYS[13], KEYS[14], KEYS[16], KEYS[17],
      KEYS[#KEYS] },
    { KEYS[9], KEYS[12], KEYS[15], #KEYS > 17 and KEYS[18] or KEYS[9], scheduled }, 4)
else -- all that such messages need
  check_key_types({ KEYS[4], KEYS[3] }, {}, 0)
end
local width = keyed and 6 or 2
local log, default_ttl_ms, first_number, largest = target.log, target.default_ttl_ms, target.sequence, target.largest
target.messages = redis.call("XLEN", log) + redis.call("ZCARD", due)

local immortal = default_ttl_ms < 0 and text(now) .. ":0"

-- load_of describes a call for refuse. originals are those of its duplicates, which are not stored, nil if none is
-- looked for.
local function load_of(count, first, last, originals)
  local max_message_bytes, total, bytes, new = target.max_message_bytes, 0, 0, 0
  for i = first, last, width do
    local size = tonumber(ARGV[i]) or tonumber((size_and_ttl(ARGV[i])))
    if size > max_message_bytes then
      return { too_large = true, index = (i - first) / width, total = size }
    end
    if #ARGV[i + width - 1] > largest then
      largest = #ARGV[i + width - 1]
    end
    total = total + size
    if not (originals and originals[(i - first) / width + 1]) then
      bytes, new = bytes + size, new + 1
    end
  end
  local load = { count = count, total = total, bytes = bytes, new = new, counted = new, keys = originals and new or 0 }
  if target.has_sessions or target.partitioned then
    for i = first, last, width do
      if target.has_sessions and ARGV[i + 4] == "" then
        load.without_session = load.without_session or (i - first) / width
      end
      load.is_mixed = load.is_mixed or (target.partitioned and ARGV[i + 3] ~= ARGV[first + 3])
    end
  end
  return load
end

-- What only a keyed call needs is made only for one.
local keys_of, schedule, save_scheduled, append_to_plain_session
if keyed then
  -- keys_of returns the keys of a call's messages in the duplicate history.
  function keys_of(first, last)
    local keys = {}
    for i = first, last, width do
      keys[#keys + 1] = history_key(target.partitioned, ARGV[i + 2], ARGV[i + 3])
    end
    return keys
  end

  -- dues and ids are the scheduled messages of all calls for the two sets; gap_from to gap_to the numbers of the last
  -- of them.
  local dues, ids, gap_from, gap_to = {}, {}, nil, nil

  -- schedule stores a message that is to be enqueued later. Its number is not one to hand out.
  function schedule(number, size, ttl_ms, due_ms, id, partition, session, payload)
    local member = string.format("%016d", number)
    local entry_id, times = text(number) .. "-" .. size, text(now) .. ":" .. text(ttl_ms)
    if target.has_sessions then
      redis.call("XADD", scheduled, entry_id, times, payload, "i", id, "p", partition, "s", session)
      put_in_session(target, session, "s", text(number))
      session_record(target, session).activity = now
    else
      redis.call("XADD", scheduled, entry_id, times, payload, "i", id, "p", partition)
      if gap_to and gap_to + 1 < number then
        add_gap(target.entity, target, gap_from, gap_to)
        gap_from = nil
      end
      gap_from, gap_to = gap_from or number, number
    end
    dues[#dues + 1], dues[#dues + 2] = due_ms, member
    ids[#ids + 1], ids[#ids + 2] = 0, scheduled_id(id, member)
    expect(target, due_ms)
  end

  -- save_scheduled puts what schedule noted into Redis.
  function save_scheduled()
    in_pieces(dues, function(...) redis.call("ZADD", due, ...) end)
    in_pieces(ids, function(...) redis.call("ZADD", scheduled_ids, ...) end)
    if gap_to then
      add_gap(target.entity, target, gap_from, gap_to)
    end
  end

  -- append_to_plain_session stores the common message of a session, in the fewest steps.
  function append_to_plain_session(i)
    local session, puts, number = ARGV[i + 4], target.puts, text(target.sequence + 1)
    local record = target.records[session]
    target.sequence, record.sequence, record.activity = target.sequence + 1, record.sequence + 1, now
    redis.call("XADD", log, number .. "-" .. ARGV[i], immortal, ARGV[i + 5], "s", session, "q", text(record.sequence))
    puts[#puts + 1], puts[#puts + 2] = 0, session_member(session, "a", number)
    target.touched[session] = target.touched[session] or "added"
  end
end

-- store stores one message, i being where it begins in ARGV.
local function store(i)
  if immortal and not keyed and tonumber(ARGV[i]) then -- the common message, in the fewest steps
    target.sequence = target.sequence + 1
    redis.call("XADD", log, string.format("%d-%s", target.sequence, ARGV[i]), immortal, ARGV[i + 1])
    target.newly_available = target.newly_available + 1
    return
  end
  if immortal and target.has_sessions and ARGV[i + 1] == "0" and tonumber(ARGV[i]) then
    return append_to_plain_session(i)
  end
  local size, ttl_ms = size_and_ttl(ARGV[i])
  ttl_ms = shorter_ttl(ttl_ms, default_ttl_ms)
  if keyed and tonumber(ARGV[i + 1]) > now then
    target.sequence = target.sequence + 1
    schedule(target.sequence, size, ttl_ms, tonumber(ARGV[i + 1]), ARGV[i + 2], ARGV[i + 3], ARGV[i + 4], ARGV[i + 5])
  else
    append_message(target, target, { size = size, payload = ARGV[i + width - 1], ttl_ms = ttl_ms,
      session = keyed and ARGV[i + 4] })
  end
end

-- store_call stores the messages of a call that are new, and returns what the caller is told.
local function store_call(first, last, count, new, keys, originals)
  if new == count then
    local number = text(target.sequence + 1)
    for i = first, last, width do
      store(i)
      if keys then
        remember_key(target, keys[(i - first) / width + 1], target.sequence)
      end
    end
    return number
  end
  local numbers = { "EACH" }
  for at = 1, count do
    local original = originals[at]
    if original then
      numbers[at + 1] = text(-(original > 0 and original or find_original(target, keys[at])))
    else
      store(first + (at - 1) * width)
      remember_key(target, keys[at], target.sequence)
      numbers[at + 1] = text(target.sequence)
    end
  end
  return numbers
end

if target.has_sessions then
  local sessions, seen, first = {}, {}, 3
  while first <= #ARGV do
    local last = first + width * read_request(ARGV[first])
    for i = first + 5, last, width do
      if not seen[ARGV[i]] then
        seen[ARGV[i]], sessions[#sessions + 1] = true, ARGV[i]
      end
    end
    first = last + 1
  end
  read_sessions(target, sessions)
end

local results, accepted, added, at = {}, false, 0, 3
while at <= #ARGV do
  local count, request = read_request(ARGV[at])
  local first, last = at + 1, at + width * count
  local refused, load = request and repeat_answer(KEYS[18], request, now), nil
  local keys = target.deduplicates and keys_of(first, last)
  local originals = keys and match_history(target, keys)
  if not refused then
    load = load_of(count, first, last, originals)
    refused = refuse(target, load)
  end
  if refused then
    results[#results + 1] = refused
  else
    reserve(target, load)
    accepted, added = true, added + load.bytes
    results[#results + 1] = store_call(first, last, count, load.new, keys, originals)
    if request then
      save_answer(KEYS[18], KEYS[#KEYS], request, results[#results], now)
    end
  end
  at = last + 1
end
if keyed then
  save_scheduled()
end
if accepted then
  redis.call("HSET", target.entity, "sequence", text(target.sequence), "bytes", text(target.bytes + added),
    "accessed_ms", text(now))
  if largest > target.largest then
    redis.call("HSET", target.entity, "largest", text(largest))
  end
end
if target.deduplicates then
  forget_old_keys(target, 100 + 2 * (target.sequence - first_number))
end
return { "OK", close_target(target), unpack(results) }
