-- set_session_state: replace the state of a held session (SESS-33, SESS-33a, SESS-33c); clear_session_state clears it.
-- Reads: all.  Writes: entity, by_session, sessions, session_states, what is due.
--
-- KEYS[1..41] queue  all keys of the queue, in the order of lib/entity/open_queue.lua
-- KEYS[42] owner     entity of a subscription's topic, else as KEYS[1]
-- KEYS[43..?] all    entity of the topic and of every subscription, if the caller was told NEEDS_ALL
-- ARGV[1] now        str  "<ms>", 0 = server time, or "<ms>;<level>": see lib/entity/lacks_fence.lua
-- ARGV[2] token      str
-- ARGV[3] expected   int  version it must have, 0 = none, -1 = any
-- ARGV[4] limit      int  most states of a queue
-- ARGV[5] state      str  the new one
-- ARGV[6] routes     int  version of the routes of the topic that have exactly the subscriptions in all, "" = there is
--                         no such list
-- ARGV[7] version    int  of the new state, a random number
-- ARGV[8] size       int  bytes that the state counts for: it may be encrypted, and so longer
--
-- Returns
--   OK                       notifications version
--   PRECONDITION_FAILED      notifications version    the one it has
--   SESSION_STATE_TOO_LARGE  actual limit
--   QUOTA_EXCEEDED           notifications limit
--   ENTITY_FULL              notifications actual limit dead_bytes
--   NEEDS_ALL                notifications    the topic may be full: its size must be added up
--   SESSION_LOCK_LOST
--   SESSION_NOT_SUPPORTED
--   ENTITY_NOT_FOUND
--   ENTITY_DISABLED          status
--   NEEDS_FENCE     level   the caller must wait for that durability; nothing was done
-- Cost: O(log N + bytes + slice of what is due), and O(subscriptions) where the topic may be full
--@include base/now_ms
--@include base/text
--@include entity/held_bytes
--@include topic/raise_topic_bound
--@include session/open_held_session
--@include entity/lacks_fence
--@include entity/close_queue
--@include session/session_record
--@include session/refuse_state
--@include session/write_state
local now, awaited = now_ms(ARGV[1])
local token, expected, limit = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local state, owner, routes, version, size = ARGV[5], KEYS[42], ARGV[6], ARGV[7], tonumber(ARGV[8])

for i = 40, #KEYS do
  redis.call("HLEN", KEYS[i]) -- as in lib/base/check_key_types
end
local queue, session, refusal = open_held_session(KEYS, now, token, function(queue)
  local unfenced = lacks_fence(queue.entity, queue.kind, awaited)
  if unfenced then
    return unfenced
  end
  local most = tonumber(redis.call("HGET", owner, "max_message_bytes"))
  return size > most and { "SESSION_STATE_TOO_LARGE", size, most }
end)
if not queue then
  return refusal
end
local notifications = close_queue(queue)
local record = session_record(queue, session)
local refused, detail = refuse_state(queue, record, expected, limit)
if refused then
  return { refused, notifications, detail }
end
local more = size - record.state_size

if more > 0 then
  local bounds = redis.call("HMGET", owner, "max_bytes", "version", "most_bytes")
  local max_bytes, most_bytes, dead_bytes = tonumber(bounds[1]), tonumber(bounds[3] or "0"), 0
  if owner == queue.entity then
    most_bytes, dead_bytes = held_bytes(KEYS, 42, 42)
  elseif most_bytes + more > max_bytes then
    if bounds[2] ~= routes then
      return { "NEEDS_ALL", notifications }
    end
    most_bytes, dead_bytes = held_bytes(KEYS, 43, #KEYS)
    redis.call("HSET", owner, "most_bytes", text(most_bytes))
  end
  if most_bytes + more > max_bytes then
    return { "ENTITY_FULL", notifications, text(most_bytes + more), text(max_bytes), text(dead_bytes) }
  end
  raise_topic_bound(owner, queue.entity, more)
end
write_state(queue, session, state, version, size)
close_queue(queue)
return { "OK", notifications, text(record.version) }
