-- resubmit: move dead letters to a queue, or back to their subscription, as new messages (DLQ-22, MSG-17). Each is removed and
-- stored in this one step, or stays.
-- Reads: all.  Writes: all of the source; log, expiry, history of the target.
--
-- KEYS[1..36] queue  all keys of the queue, in the order of lib/open_queue.lua
-- KEYS[37..44] target  entity, log, expiry, waiting, due, history, history_times, modified of the queue they go to
-- KEYS[45..51] sessions  of the queue they go to, in the order of lib/open_target_sessions.lua
-- KEYS[52] owner  entity of the topic of the subscription they go to, else as KEYS[37]
-- KEYS[53..?] all  entity of the topic and of every subscription, if the caller was told NEEDS_ALL
-- ARGV[1] now        int  0 = server time
-- ARGV[2] bypass     int  1: duplicate detection does not apply
-- ARGV[3] home       int  1: the target is what they are dead letters of
-- ARGV[4] version    int  of the routes of the topic that have exactly the subscriptions in all, "" = there is no such list
-- ARGV[5..] per letter: number, ttl_ms (-1 = none), expires_ms (0 = a new life), id, partition, session, and what sending it anew adds
--           to the changes of the message: "" or "<bytes more>:<change>"
--
-- Returns
--   OK                news target_alarm, then per letter one of
--                       number          moved, its new number
--                       -number         dropped as a duplicate of that number
--                       reason          not moved: MESSAGE_NOT_FOUND SESSION_ID_MISSING ENTITY_FULL
--                                       MESSAGE_SIZE_EXCEEDED QUOTA_EXCEEDED
--   NEEDS_ALL         the topic may be full: its size must be added up; nothing was done
--   ENTITY_NOT_FOUND  source or target
--   ENTITY_DISABLED   source or target, then the status
-- Cost: O(letters log N + bytes moved)
--@include now_ms
--@include text
--@include open_source
--@include touch
--@include close_queue
--@include open_target
--@include open_history
--@include can_send
--@include history_key
--@include history_room
--@include remembered
--@include remember
--@include lifetime
--@include expect
--@include position_of
--@include is_fresh
--@include take_unlocked
--@include entry_at
--@include remove_entry
--@include wake_next
--@include call_forwarder
--@include open_target_sessions
--@include raise_most
--@include held_bytes
--@include append_to_session
--@include close_sessions
local now, bypass, home, version = now_ms(ARGV[1]), ARGV[2] == "1", ARGV[3] == "1", ARGV[4]
local source_keys = { unpack(KEYS, 1, 36) }
local log, expiry, waiting, due, modified, owner = KEYS[38], KEYS[39], KEYS[40], KEYS[41], KEYS[44], KEYS[52]
local same = KEYS[37] == KEYS[1]

-- The target's refusals come first: nothing may be done then. Its numbers are read after what is due on the source, which may be
-- the same queue.
if redis.call("EXISTS", KEYS[1]) == 0 then
  return { "ENTITY_NOT_FOUND", "source" }
end
local target = open_target(KEYS[37], now, home)
if not target then
  return { "ENTITY_NOT_FOUND", "target" }
end
local queue, dead, refusal = open_source(source_keys, now, "dead_")
if not queue then
  return { refusal[1], "source", refusal[2] }
end
if not can_send(target.status) then
  return { "ENTITY_DISABLED", "target", target.status }
end
if queue.has_sessions then -- the target may be the same queue, and reads them anew
  queue.main.came = queue.main.came + close_sessions(queue)
  queue.records = {}
end
target = open_target(KEYS[37], now, home)
target.max_message_bytes = tonumber(redis.call("HGET", owner, "max_message_bytes"))
target.history, target.history_times = KEYS[42], KEYS[43]
open_history(target)
if target.has_sessions then
  open_target_sessions(target, { unpack(KEYS, 45, 51) })
end
local detects = target.deduplicates and not bypass

-- held is what the topic of the target holds, where that is to be known: what counted for nobody's quota needs room in it again (TOPIC-7).
local held
if home and not same and owner ~= target.entity then
  local most, bounds = 0, redis.call("HMGET", owner, "max_bytes", "version", "most_bytes")
  for i = 5, #ARGV, 7 do
    local position = position_of(dead, ARGV[i])
    local entry = position and entry_at(dead.log, position)
    most = most + (entry and string.match(entry[1], "%d+$") or 0) + 65536 -- at least what its changes can add
  end
  target.max_bytes, held = tonumber(bounds[1]), tonumber(bounds[3] or "0")
  if held + most > target.max_bytes then
    if bounds[2] ~= version then
      return { "NEEDS_ALL", close_queue(queue) }
    end
    held = held_bytes(KEYS, 53, #KEYS)
  end
end

local function refusal(size)
  local before = held
  if not same and not held then
    before = held_bytes(KEYS, 37, 37)
  end
  if before and before + size > target.max_bytes then
    return "ENTITY_FULL"
  end
  local count = redis.call("XLEN", log) + redis.call("ZCARD", due)
  if target.max_message_count > 0 and count + 1 > target.max_message_count then
    return "ENTITY_FULL"
  end
  if detects and history_room(target) < 1 then
    return "QUOTA_EXCEEDED"
  end
  return nil
end

-- store appends a copy to the target and returns its number. change is what the letter's properties were changed to.
local sequence = target.sequence
local function store(entry, size, change, ttl_ms, expires_ms, session)
  if target.default_ttl_ms >= 0 and (ttl_ms < 0 or ttl_ms > target.default_ttl_ms) then
    ttl_ms = target.default_ttl_ms
  end
  local times, expires = lifetime(now, ttl_ms, expires_ms > 0 and expires_ms or nil)
  sequence = sequence + 1
  local number = text(sequence)
  local own_size = string.match(entry[1], "%d+$")
  if target.has_sessions then
    append_to_session(target, log, number, own_size, times, entry[2][2], session)
  else
    redis.call("XADD", log, number .. "-" .. own_size, times, entry[2][2])
  end
  if expires then
    redis.call("ZADD", expiry, expires, number)
    expect(target, tonumber(expires))
  end
  if change then
    redis.call("HSET", modified, number, change)
  end
  redis.call("HINCRBY", target.entity, "bytes", text(size))
  redis.call("HSET", target.entity, "sequence", number)
  if size > target.largest then
    target.largest = size
    redis.call("HSET", target.entity, "largest", text(size))
  end
  return number
end

local function resubmit(i)
  local number, ttl_ms, expires_ms = ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
  local position = position_of(dead, number)
  local unlocked = position and (is_fresh(dead, position) or redis.call("ZSCORE", dead.ready, position)
    or redis.call("ZSCORE", dead.delayed, position) or tonumber(redis.call("ZSCORE", dead.deferred, position) or "0") > 0)
  if not unlocked then
    return "MESSAGE_NOT_FOUND"
  end
  local session = ARGV[i + 5]
  local key = history_key(target.partitioned, ARGV[i + 3], ARGV[i + 4])
  local original = detects and remembered(target, key)
  local entry = entry_at(dead.log, position)
  local change, longer = redis.call("HGET", dead.modified, position), 0
  if ARGV[i + 6] ~= "" then -- changes follow one another: the last one of a field holds
    local more, before = string.match(change or "0:", "^(%-?%d+):(.*)$")
    local further, id = string.match(ARGV[i + 6], "^(%-?%d+):(.*)$")
    change = text(more + further) .. ":" .. before .. id
    longer = tonumber(further)
  end
  local size = string.match(entry[1], "%d+$") + (change and string.match(change, "^%-?%d+") or 0)
  if size > target.max_message_bytes then
    return "MESSAGE_SIZE_EXCEEDED"
  end
  if target.has_sessions and session == "" then
    return "SESSION_ID_MISSING"
  end
  local result
  if original then
    result = text(-original)
  else
    local refused = refusal(size)
    if refused then
      return refused
    end
    result = store(entry, size, change, ttl_ms, expires_ms, session)
    held = held and held + size
    raise_most(owner, target.entity, longer)
    if detects then
      remember(target, key, tonumber(result))
    end
  end
  take_unlocked(queue, dead, position)
  remove_entry(queue, dead, entry)
  return result
end

local results, moved, accepted = {}, 0, false
for i = 5, #ARGV, 7 do
  local result = resubmit(i)
  local number = tonumber(result)
  results[#results + 1] = result
  moved, accepted = moved + (number and number > 0 and 1 or 0), accepted or number ~= nil
end
if accepted then
  touch(target.entity, now) -- as a send does
end
if held then
  redis.call("HSET", owner, "most_bytes", text(held))
end
if target.has_sessions then
  moved = close_sessions(target)
end
if moved > 0 then
  wake_next(waiting, moved)
end
local news, target_alarm = close_queue(queue), "0"
if same then
  target.forwarder_called = queue.forwarder_called
end
if target.expected then
  local present = tonumber(redis.call("HGET", target.entity, "alarm_ms") or "0")
  if present == 0 or target.expected < present then
    target_alarm = text(target.expected)
    redis.call("HSET", target.entity, "alarm_ms", target_alarm)
  end
end
if moved > 0 and target.forwards then
  target_alarm = call_forwarder(target, target_alarm)
end
return { "OK", news, target_alarm, unpack(results) }
