-- transact: run the operations of a transaction, all or none (TX-11). Everything is checked, in the order of
-- the operations, before anything is written: what one of them frees is not there for another one.
-- Reads: all.  Writes: all of the entities that it names.
--
-- KEYS[1] requests         hash  of the entity of the first operation: as in send (IDEM-1)
-- KEYS[2] request_times    zset  as in send
-- KEYS[3..] entities       -     of each entity all keys, in the order of lib/entity/open_queue.lua, and the entity of
--                                a subscription's topic, else its own; then the lists of
--                                lib/transaction/open_members.lua
-- ARGV[1] now         str  "<ms>", 0 = server time, or "<ms>;<level>": see lib/entity/lacks_fence.lua
-- ARGV[2] head        str  how many operations; under a request id as in lib/request/read_request.lua
-- ARGV[3] entities    int  how many
-- ARGV[4] limit       int  most states of a queue
-- ARGV[5] bytes       int  of the messages that are abandoned or dead-lettered, before properties changed; 0 = one
--                          alone, which may be of any size
-- ARGV[6] max_bytes   int  most bytes that they may have together
-- ARGV[7..] list ...  str  for each entity "<keys>:<routes>", as in lib/transaction/open_members.lua; then for each
--         operation its verb, the number of its entity, "" or "dead_" (which of the two queues is the source), the
--         token of a session or "", two values, how many items follow, and how many extras follow these. By verb, the
--         values, the items and the extras are
--         send         "topic" or "queue", "": messages as in send, keyed
--         cancel       "", "": sequence numbers
--         complete     "", "": locks, as many ids
--         abandon      delay_ms, skip, as in abandon: locks, nothing or as many changes
--         defer        "", "": locks, nothing or as many changes
--         dead_letter  reason, description, as in dead_letter: locks, nothing or as many changes
--         set_state    version that it must have, or -1, version of the new state: the state and, as an extra, the
--                      bytes that it counts for; nothing = clear it
--
-- Returns
--   OK              notifications numbers
--                   notifications: number of an entity and what close_queue returns, in turn
--                   numbers: of each message sent, with the sign turned for a duplicate of that number, and the
--                   version of each state, in the order of the operations
--   AGAIN           seed answer    (taken before; the answer is as in lib/request/save_answer.lua)
--   OTHER_MESSAGES  its request id was taken with other operations
--   NEEDS_ALL       entities  their topics may be full: their sizes must be added up; nothing was done, as with the
--                   following
--   TOO_LARGE       bytes     of the messages that are abandoned or dead-lettered
--   REFUSED         operation, from 0, and why:
--         ENTITY_NOT_FOUND
--         ENTITY_DISABLED status
--         MESSAGE_SIZE_EXCEEDED index actual limit  (index -1: the batch)
--         SESSION_ID_MISSING index
--         PARTITION_KEY_MISMATCH index
--         ENTITY_FULL what actual limit dead_bytes
--         QUOTA_EXCEEDED limit
--         MESSAGE_NOT_FOUND number ...
--         MESSAGE_LOCK_LOST index
--         CHANGES index
--         SESSION_REQUIRED
--         SESSION_NOT_SUPPORTED
--         SESSION_LOCK_LOST
--         SESSION_STATE_TOO_LARGE actual limit
--         PRECONDITION_FAILED version
--         INTERNAL
--   NEEDS_FENCE     level   the caller must wait for that durability; nothing was done
-- Cost: O(operations log N + bytes moved), and O(subscriptions) where a topic may be full
--@include base/now_ms
--@include base/slice
--@include base/text
--@include duplicate/open_history
--@include intake/append_message
--@include intake/store_call
--@include log/shorter_ttl
--@include log/size_and_ttl
--@include request/read_request
--@include request/repeat_answer
--@include request/save_answer
--@include schedule/remove_scheduled
--@include schedule/schedule_message
--@include session/remove_state
--@include session/session_record
--@include session/touch_session
--@include session/write_state
--@include transaction/close_member
--@include transaction/longer_by
--@include transaction/open_members
--@include transaction/refuse_unfenced
--@include transaction/open_quota
--@include transaction/read_operations
--@include transaction/refuse_cancel
--@include transaction/refuse_send
--@include transaction/refuse_set_state
--@include transaction/refuse_settlement
--@include transaction/settle
local now, awaited = now_ms(ARGV[1])
local requests, request_times, entities, limit = KEYS[1], KEYS[2], tonumber(ARGV[3]),
  tonumber(ARGV[4])
local bytes, max_bytes = tonumber(ARGV[5]), tonumber(ARGV[6])

redis.call("HLEN", requests) -- as in lib/base/check_key_types
redis.call("ZCARD", request_times)
local _, request = read_request(ARGV[2])
local members, lists = open_members(KEYS, ARGV, now, entities)
local refusal = refuse_unfenced(members, awaited)
if refusal then
  return refusal
end
local repeated = request and repeat_answer(requests, request, now)
if repeated then
  return repeated
end
local operations, quotas = read_operations(ARGV, 7 + entities), {}

local function refuse_operation(member, operation)
  local verb = operation.verb
  if not member.queue then
    return { "ENTITY_NOT_FOUND" }
  elseif verb == "send" then
    return refuse_send(member, operation, open_quota(quotas, member, KEYS, lists), ARGV)
  elseif verb == "cancel" then
    return refuse_cancel(member.queue, operation, ARGV)
  elseif verb == "set_state" then
    return refuse_set_state(member.queue, operation, open_quota(quotas, member, KEYS, lists), limit, ARGV)
  end
  return refuse_settlement(member.queue, operation, ARGV)
end

-- All topics whose size must be added up are asked for at once; what else may be refused is found out with it.
local places, asked = {}, {}
for i, operation in ipairs(operations) do
  local member, verb = members[operation.place], operation.verb
  local refused = refuse_operation(member, operation)
  if refused and refused[1] == "NEEDS_ALL" then
    if not asked[member.queue.owner] then
      places[#places + 1], asked[member.queue.owner] = operation.place, true
    end
  elseif refused and #places == 0 then
    return { "REFUSED", i - 1, unpack(refused) }
  elseif not refused and bytes > 0 and (verb == "abandon" or verb == "dead_letter") then
    bytes = bytes + longer_by(member.queue, operation, ARGV)
  end
end
if #places > 0 then
  return { "NEEDS_ALL", places }
end
if bytes > max_bytes then
  return { "TOO_LARGE", text(bytes) }
end

-- From here on nothing is refused.
local numbers = { "EACH" }
for owner, quota in pairs(quotas) do
  if quota.most_bytes and quota.held ~= quota.most_bytes then
    redis.call("HSET", owner, "most_bytes", text(quota.held))
  end
end

local function send(member, operation)
  local queue, target = member.queue, member.target
  local answer = store_call(target, operation.load, function(load, place)
    local i = load.first + 6 * (place - 1)
    local size, ttl_ms = size_and_ttl(ARGV[i])
    local message = {
      size = size, ttl_ms = shorter_ttl(ttl_ms, target.default_ttl_ms), payload = ARGV[i + 5],
      due_ms = tonumber(ARGV[i + 1]), id = ARGV[i + 2], partition = ARGV[i + 3], session = ARGV[i + 4],
    }
    if queue.is_topic then -- its copies are made as those of a scheduled message (SCHED-7)
      message.due_ms = math.max(message.due_ms, now)
      schedule_message(target, message)
    elseif message.due_ms > now then
      schedule_message(target, message)
    else
      append_message(queue, target, message)
    end
  end)
  member.added, queue.main.sequence = member.added + operation.load.bytes, target.sequence
  for place = 1, operation.count do
    numbers[#numbers + 1] = type(answer) == "table" and answer[place + 1] or text(answer + place - 1)
  end
end

local function cancel(queue, operation)
  open_history(queue)
  for _, member in ipairs(operation.members) do
    remove_scheduled(queue, member, true)
  end
end

local function set_state(queue, operation)
  local session = operation.session
  if operation.count > 0 then
    local from = operation.from
    write_state(queue, session, ARGV[from], operation.second, tonumber(ARGV[from + 1]))
    numbers[#numbers + 1] = operation.second
    return
  end
  local record = session_record(queue, session)
  if record.version > 0 then
    remove_state(queue, session, record)
  end
  record.activity = now
  touch_session(queue, session)
end

-- Bounds for all entities: what may expire with sessions (expire_slice), and locks that leave their runs (save_run).
local rest_left, rest_bytes, dissolved = nil, nil, nil
for _, operation in ipairs(operations) do
  local member, verb = members[operation.place], operation.verb
  if verb == "send" then
    send(member, operation)
  elseif verb == "cancel" then
    cancel(member.queue, operation)
  elseif verb == "set_state" then
    set_state(member.queue, operation)
  else
    local queue = member.queue
    local side = operation.sub == "" and queue.main or queue.dead
    queue.rest_left, queue.rest_bytes, side.dissolved = rest_left, rest_bytes, dissolved
    settle(queue, operation, ARGV)
    rest_left, rest_bytes, dissolved = queue.rest_left, queue.rest_bytes, side.dissolved
  end
end

local notifications, left = {}, 1000 -- as in forget_old_keys, for all entities
for i, member in ipairs(members) do
  local said, forgotten = close_member(member, left)
  left = left - forgotten
  if said ~= "0" then
    notifications[#notifications + 1], notifications[#notifications + 2] = i, said
  end
end
if request then
  save_answer(requests, request_times, request, numbers, now)
end
return { "OK", notifications, slice(numbers, 2) }
