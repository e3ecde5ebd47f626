-- resubmit: move dead letters to a queue, or back to their subscription, as new messages (DLQ-22, MSG-17). Each is
-- removed and stored in this one step, or stays.
-- Reads: all.  Writes: all of the source; log, expiry, history of the target.
--
-- KEYS[1..41] queue  all keys of the queue, in the order of lib/entity/open_queue.lua
-- KEYS[42] target_entity         hash    options and state of the queue they go to
-- KEYS[43] target_log            stream  its messages
-- KEYS[44] target_expiry         zset    as in send
-- KEYS[45] target_waiting        zset    as in send
-- KEYS[46] target_due            zset    as in send
-- KEYS[47] target_history        hash    as in send
-- KEYS[48] target_history_times  zset    as in send
-- KEYS[49] target_modified       hash    position -> changed properties
-- KEYS[50..56] target_sessions   its sessions, in the order of lib/session/open_target_sessions.lua
-- KEYS[57] target_owner          hash    entity of the topic of the subscription they go to, else as KEYS[42]
-- KEYS[58..?] all  entity of the topic and of every subscription, if the caller was told NEEDS_ALL
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
--@include entity/can_send
--@include intake/refuse
--@include intake/reserve
--@include intake/close_target
--@include duplicate/open_history
--@include dead_letter/read_letters
--@include dead_letter/share_quota
--@include dead_letter/load_of_letter
--@include dead_letter/append_letter
--@include log/changes_with
--@include log/count_messages
--@include log/remove_entry
--@include available/find_unlocked
--@include available/take_unlocked
--@include session/open_target_sessions
--@include session/save_sessions
--@include topic/raise_topic_bound
local now, bypass, home, version, owner = now_ms(ARGV[1]), ARGV[2] == "1", ARGV[3] == "1", ARGV[4], KEYS[57]
local same = KEYS[42] == KEYS[1]

-- The target's refusals come first: nothing may be done then. Its numbers are read after what is due on the source,
-- which may be the same queue.
if redis.call("EXISTS", KEYS[1]) == 0 then
  return { "ENTITY_NOT_FOUND", "source" }
end
local target = open_target(KEYS[42], now, home)
if not target then
  return { "ENTITY_NOT_FOUND", "target" }
end
local ready_sessions = target.has_sessions and KEYS[52] or KEYS[45] -- without sessions see intake/append_chunks
check_key_types({ KEYS[45], KEYS[44], KEYS[46], KEYS[48], KEYS[50], ready_sessions, KEYS[53], KEYS[55], KEYS[56] },
  { KEYS[47], KEYS[49], KEYS[51], KEYS[54], KEYS[43] }, 4)
for i = 57, #KEYS do
  redis.call("HLEN", KEYS[i])
end
local queue, dead, refusal = open_source({ unpack(KEYS, 1, 41) }, now, "dead_")
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
target = open_target(KEYS[42], now, home)
target.max_message_bytes = tonumber(redis.call("HGET", owner, "max_message_bytes"))
target.log, target.expiry, target.waiting, target.due = KEYS[43], KEYS[44], KEYS[45], KEYS[46]
target.modified, target.history, target.history_times = KEYS[49], KEYS[47], KEYS[48]
open_history(target)
local detects = target.deduplicates and not bypass
target.messages = count_messages(target) + redis.call("ZCARD", target.due)
if target.has_sessions then
  open_target_sessions(target, { unpack(KEYS, 50, 56) })
end

-- is_of_topic reports whether the dead letters go back to a subscription whose topic they did not count for.
local is_of_topic, letters = home and not same and owner ~= target.entity, read_letters(ARGV, 5)
if same then
  target.held = nil -- they are held already
elseif is_of_topic and not share_quota(target, owner, version, dead, letters, KEYS, 57) then
  return { "NEEDS_ALL", close_queue(queue) }
end

local added = 0

-- resubmit moves a dead letter and returns its outcome.
local function resubmit(letter)
  local position, entry = find_unlocked(queue, dead, letter.number)
  if not entry then
    return "MESSAGE_NOT_FOUND"
  end
  local change, longer = changes_with(dead, position, letter.further)
  local size = string.match(entry[1], "%d+$") + (change and string.match(change, "^%-?%d+") or 0)
  local load = load_of_letter(target, letter, size, detects)
  local refused = refuse(target, load)
  if refused then
    return refused[1]
  end
  reserve(target, load)
  local original = letter.original
  local number = original and text(-original) or append_letter(target, letter, entry, change)
  if not original then
    added = added + size
    raise_topic_bound(owner, target.entity, longer)
  end
  take_unlocked(queue, dead, position)
  remove_entry(queue, dead, entry)
  return number
end

local results, first_number, accepted = {}, target.sequence, false
for i, letter in ipairs(letters) do
  results[i] = resubmit(letter)
  accepted = accepted or tonumber(results[i]) ~= nil
end
if accepted then
  touch(target.entity, now) -- as a send does
end
if target.sequence > first_number then
  redis.call("HSET", target.entity, "sequence", text(target.sequence))
  redis.call("HINCRBY", target.entity, "bytes", text(added))
end
if is_of_topic then
  redis.call("HSET", owner, "most_bytes", text(target.held))
end
local notifications = close_queue(queue)
-- which close_queue changes if both are the same
local present = redis.call("HMGET", target.entity, "alarm_ms", "forwarder_called")
target.alarm, target.forwarder_called = tonumber(present[1] or "0"), present[2] == "1"
return { "OK", notifications, close_target(target), unpack(results) }
