-- list_sessions: read the sessions of a queue in order of their ids (SESS-36 to SESS-38), after doing what is due.
-- Reads: all.  Writes: what is due.
-- Flags: allow-oom
--
-- KEYS[1..41] queue  all keys of the queue, in the order of lib/entity/open_queue.lua
-- ARGV[1] now      int  0 = server time
-- ARGV[2] after    str  the session to begin after, "" = from the start
-- ARGV[3] limit    int  most rows
-- ARGV[4] updated  int  only sessions whose state was set after this instant (ms), -1 = all
-- ARGV[5] active   int  only sessions with activity after this instant (ms), -1 = all
--
-- Returns
--   OK                notifications next, then per row a list: session available delayed locked deferred scheduled
--                     locked_until_ms activity_ms state_size version blocked
--                     next: the last session looked at when there are more, else ""
--   SESSION_NOT_SUPPORTED
--   ENTITY_NOT_FOUND
-- Cost: O(100 log N + slice of what is due)
--@include base/now_ms
--@include base/text
--@include session/open_session_queue
--@include due/clear_due
--@include entity/close_queue
--@include session/session_record
--@include session/session_member
--@include base/is_before
local now, after, limit = now_ms(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local updated, active = tonumber(ARGV[4]), tonumber(ARGV[5])

local queue, refusal = open_session_queue(KEYS, now)
if not queue then
  return refusal
end
clear_due(queue)
local notifications = close_queue(queue)
local locks = queue.main.locks

-- next_session returns the first session after another: the lower of those with something in by_session and in locks.
local function next_session(session)
  local from, first = session == "" and "-" or "[" .. session .. "\1", nil
  for _, key in ipairs({ queue.by_session, locks }) do
    local member = redis.call("ZRANGE", key, from, "+", "BYLEX", "LIMIT", 0, 1)[1]
    local found = member and string.match(member, "^(.-)%z")
    if found and (not first or is_before(found, first)) then
      first = found
    end
  end
  return first
end

local function count(session, letter)
  local from = session_member(session, letter)
  return redis.call("ZLEXCOUNT", queue.by_session, "[" .. from, "(" .. from .. ":")
end

local rows, looked, session = {}, 0, next_session(after)
while session and #rows < limit and looked < 100 do
  looked, after = looked + 1, session
  local record = session_record(queue, session)
  if (updated < 0 or (record.version > 0 and record.state_ms > updated))
    and (active < 0 or record.activity > active) then
    local delayed = count(session, "w") + count(session, "x")
    rows[#rows + 1] = {
      session, count(session, "a") + delayed, delayed,
      redis.call("ZLEXCOUNT", locks, "[" .. session .. "\0", "(" .. session .. "\1"),
      count(session, "d"), count(session, "s"), redis.call("ZSCORE", queue.session_locks, session) or "0",
      text(record.activity), text(record.state_size), text(record.version), record.blocked == "" and 0 or 1,
    }
  end
  session = next_session(session)
end
return { "OK", notifications, session and after or "", unpack(rows) }
