-- resubmit: move dead letters to a queue, or back to their subscription, as new messages (DLQ-22, MSG-17). Each is
-- removed and stored in this one step, or stays.
-- Reads: all.  Writes: all of the source; log, expiry, history of the target.
--
-- KEYS[1..36] queue  all keys of the queue, in the order of lib/entity/open_queue.lua
-- KEYS[37] target_entity         hash    options and state of the queue they go to
-- KEYS[38] target_log            stream  its messages
-- KEYS[39] target_expiry         zset    as in send
-- KEYS[40] target_waiting        zset    as in send
-- KEYS[41] target_due            zset    as in send
-- KEYS[42] target_history        hash    as in send
-- KEYS[43] target_history_times  zset    as in send
-- KEYS[44] target_modified       hash    position -> changed properties
-- KEYS[45..51] target_sessions   its sessions, in the order of lib/session/open_target_sessions.lua
-- KEYS[52] target_owner          hash    entity of the topic of the subscription they go to, else as KEYS[37]
-- KEYS[53..?] all  entity of the topic and of every subscription, if the caller was told NEEDS_ALL
-- ARGV[1] now        int  0 = server time
-- ARGV[2] bypass     int  1: duplicate detection does not apply
-- ARGV[3] home       int  1: the target is what they are dead letters of
-- ARGV[4] version    int  of the routes of the topic that have exactly the subscriptions in all, "" = there is no such
--                         list
-- ARGV[5..] per letter: number, ttl_ms (-1 = none), expires_ms (0 = a new life), id, partition, session, and what
--         sending it again adds to the changes of the message: "" or "<bytes more>:<change>"
--
-- Returns
--   OK                notifications target_alarm, then per letter one of
--                       number          moved, its new number
--                       -number         dropped as a duplicate of that number
--                       reason          not moved: MESSAGE_NOT_FOUND SESSION_ID_MISSING ENTITY_FULL
--                                       MESSAGE_SIZE_EXCEEDED QUOTA_EXCEEDED
--   NEEDS_ALL         the topic may be full: its size must be added up; nothing was done
--   ENTITY_NOT_FOUND  source or target
--   ENTITY_DISABLED   source or target, then the status
-- Cost: O(letters log N + bytes moved)
--@include base/now_ms
--@include base/check_key_types
--@include base/text
--@include entity/open_source
--@include entity/touch
--@include entity/close_queue
--@include entity/open_target
--@include duplicate/open_history
--@include entity/can_send
--@include intake/refuse
--@include intake/reserve
--@include intake/append_message
--@include intake/raise_largest
--@include intake/close_target
--@include duplicate/history_key
--@include duplicate/find_original
--@include duplicate/remember_key
--@include log/shorter_ttl
--@include log/position_of
--@include available/is_fresh
--@include available/take_unlocked
--@include log/entry_at
--@include entity/drop_orphan
--@include log/remove_entry
--@include session/open_target_sessions
--@include topic/raise_topic_bound
--@include entity/held_bytes
--@include session/save_sessions
local now, bypass, home, version = now_ms(ARGV[1]), ARGV[2] == "1", ARGV[3] == "1", ARGV[4]
local source_keys = { unpack(KEYS, 1, 36) }
local log, expiry, waiting, due, modified, owner = KEYS[38], KEYS[39], KEYS[40], KEYS[41], KEYS[44], KEYS[52]
local same = KEYS[37] == KEYS[1]

-- The target's refusals come first: nothing may be done then. Its numbers are read after what is due on the source,
-- which may be
-- the same queue.
if redis.call("EXISTS", KEYS[1]) == 0 then
  return { "ENTITY_NOT_FOUND", "source" }
end
local target = open_target(KEYS[37], now, home)
if not target then
  return { "ENTITY_NOT_FOUND", "target" }
end
check_key_types({ waiting, expiry, due, KEYS[43], KEYS[45], KEYS[47], KEYS[48], KEYS[50], KEYS[51] },
  { KEYS[42], modified, KEYS[46], KEYS[49], log }, 4)
for i = 52, #KEYS do
  redis.call("HLEN", KEYS[i])
end
local queue, dead, refusal = open_source(source_keys, now, "dead_")
if not queue then
  return { refusal[1], "source", refusal[2] }
end
if not can_send(target.status) then
  return { "ENTITY_DISABLED", "target", target.status }
end
if queue.has_sessions then -- the target may be the same queue, and reads them again
  queue.main.newly_available = queue.main.newly_available + save_sessions(queue)
  queue.records = {}
end
target = open_target(KEYS[37], now, home)
target.max_message_bytes = tonumber(redis.call("HGET", owner, "max_message_bytes"))
target.log, target.expiry, target.waiting = log, expiry, waiting
target.history, target.history_times = KEYS[42], KEYS[43]
open_history(target)
target.messages = redis.call("XLEN", log) + redis.call("ZCARD", due)
if target.has_sessions then
  open_target_sessions(target, { unpack(KEYS, 45, 51) })
end
local detects = target.deduplicates and not bypass

-- own_topic reports whether the dead letters go back to a subscription whose topic they did not count for: they need
-- room in it
-- again (TOPIC-7).
local own_topic = home and not same and owner ~= target.entity
if same then
  target.held = nil -- they are held already
elseif own_topic then
  local most, bounds = 0, redis.call("HMGET", owner, "max_bytes", "version", "most_bytes")
  for i = 5, #ARGV, 7 do
    local position = position_of(dead, ARGV[i])
    local entry = position and entry_at(dead.log, position)
    most = most + (entry and string.match(entry[1], "%d+$") or 0) + 65536 -- at least what its changes can add
  end
  target.max_bytes, target.held = tonumber(bounds[1]), tonumber(bounds[3] or "0")
  if target.held + most > target.max_bytes then
    if bounds[2] ~= version then
      return { "NEEDS_ALL", close_queue(queue) }
    end
    target.held = held_bytes(KEYS, 53, #KEYS)
  end
end

-- find returns the position and log entry of a dead letter that is not locked, nil when there is none of that number.
local function find(number)
  local position = position_of(dead, number)
  local unlocked = position and (is_fresh(dead, position) or redis.call("ZSCORE", dead.ready, position)
    or redis.call("ZSCORE", dead.delayed, position) or tonumber(redis.call("ZSCORE", dead.deferred, position)
      or "0") > 0)
  if not unlocked then
    return nil
  end
  local entry = entry_at(dead.log, position)
  if not entry then
    drop_orphan(queue, dead, position)
  end
  return position, entry
end

-- changes_of returns the changed properties that a letter has at the target, nil for none, and how many bytes further
-- adds to
-- them. Changes follow one another: the last one of a field holds.
local function changes_of(position, further)
  local change = redis.call("HGET", dead.modified, position) or nil
  if further == "" then
    return change, 0
  end
  local more, before = string.match(change or "0:", "^(%-?%d+):(.*)$")
  local longer, id = string.match(further, "^(%-?%d+):(.*)$")
  return text(more + longer) .. ":" .. before .. id, tonumber(longer)
end

-- store appends a copy of a letter to the target and returns its number.
local function store(entry, change, ttl_ms, expires_ms, session)
  local payload = entry[2][2]
  local number = append_message(target, target, {
    size = string.match(entry[1], "%d+$"), payload = payload, ttl_ms = shorter_ttl(ttl_ms, target.default_ttl_ms),
    ends_ms = expires_ms > 0 and expires_ms or nil, session = session,
  })
  if change then
    redis.call("HSET", modified, number, change)
  end
  raise_largest(target, #payload)
  return number
end

local added = 0
local function resubmit(i)
  local position, entry = find(ARGV[i])
  if not entry then
    return "MESSAGE_NOT_FOUND"
  end
  local session, key = ARGV[i + 5], history_key(target.partitioned, ARGV[i + 3], ARGV[i + 4])
  local original = detects and find_original(target, key)
  local change, longer = changes_of(position, ARGV[i + 6])
  local size = string.match(entry[1], "%d+$") + (change and string.match(change, "^%-?%d+") or 0)
  local new = original and 0 or 1
  local load = {
    count = 1, total = size, too_large = size > target.max_message_bytes,
    without_session = target.has_sessions and session == "",
    new = new, bytes = new * size, counted = new, keys = detects and new or 0,
  }
  local refused = refuse(target, load)
  if refused then
    return refused[1]
  end
  reserve(target, load)
  local result
  if original then
    result = text(-original)
  else
    result = store(entry, change, tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]), session)
    added = added + size
    raise_topic_bound(owner, target.entity, longer)
    if detects then
      remember_key(target, key, tonumber(result))
    end
  end
  take_unlocked(queue, dead, position)
  remove_entry(queue, dead, entry)
  return result
end

local results, first_number, accepted = {}, target.sequence, false
for i = 5, #ARGV, 7 do
  results[#results + 1] = resubmit(i)
  accepted = accepted or tonumber(results[#results]) ~= nil
end
if accepted then
  touch(target.entity, now) -- as a send does
end
if target.sequence > first_number then
  redis.call("HSET", target.entity, "sequence", text(target.sequence))
  redis.call("HINCRBY", target.entity, "bytes", text(added))
end
if own_topic then
  redis.call("HSET", owner, "most_bytes", text(target.held))
end
local notifications = close_queue(queue)
-- which close_queue changes if both are the same
local present = redis.call("HMGET", target.entity, "alarm_ms", "forwarder_called")
target.alarm, target.forwarder_called = tonumber(present[1] or "0"), present[2] == "1"
return { "OK", notifications, close_target(target), unpack(results) }
