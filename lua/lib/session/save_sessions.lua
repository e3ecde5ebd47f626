-- save_sessions does what follows from this script's changes to sessions and writes their records: which are woken,
-- ready (SESS-12, SESS-13) or idle, and when a state is forgotten. Returns how many became ready.
--@include session/session_record
--@include session/write_session
--@include base/in_pieces
--@include session/receivable
--@include wake/wake_holders
--@include session/is_session_empty
--@include due/expect
local function save_sessions(queue)
  if queue.puts then
    in_pieces(queue.puts, function(...) redis.call("ZADD", queue.by_session, ...) end)
    queue.puts = nil
  end
  local idle_at_most = 100000 -- semantics.MaxIdleSessions
  local any_idle = redis.call("EXISTS", queue.idle_sessions) == 1
  local any_delayed = redis.call("EXISTS", queue.delayed) == 1
  local any_due = redis.call("EXISTS", queue.states_due) == 1
  local ready, records, awaited = {}, {}, {}

  -- close_free does so for a session without a holder. Returns false when its record is not kept.
  local function close_free(session, record, what)
    if record.blocked == "" and ((what == "added" and not any_delayed) or #receivable(queue, session, 1) > 0) then
      ready[#ready + 1], ready[#ready + 2] = queue.now, session
    elseif what ~= "added" then
      redis.call("ZREM", queue.ready_sessions, session)
    end
    if any_idle then
      redis.call("ZREM", queue.idle_sessions, session)
    end
    if what == "added" or not is_session_empty(queue, session) then
      if any_due then
        redis.call("ZREM", queue.states_due, session)
      end
    elseif record.version > 0 then
      local due = record.activity + queue.state_ttl_ms
      if what ~= "unblocked" and queue.state_ttl_ms >= 0
        and redis.call("ZADD", queue.states_due, "NX", due, session) == 1 then
        expect(queue, due) -- only its state is left (SESS-33c)
      end
    elseif record.blocked == "" then
      if record.sequence == 0 then
        return false
      end
      redis.call("ZADD", queue.idle_sessions, queue.now, session)
      any_idle = true
    end
    return true
  end

  for session, what in pairs(queue.touched) do
    local record, keep = session_record(queue, session), true
    if record.token ~= "" then
      awaited[#awaited + 1] = session
    else
      keep = close_free(session, record, what)
    end
    local value = keep and write_session(record)
    if not keep and record.stored then
      redis.call("HDEL", queue.sessions, session)
    elseif keep and value ~= record.stored then
      records[#records + 1], records[#records + 2] = session, value
    end
    record.stored = keep and value or nil -- the script may come back to it
  end
  queue.touched = {}
  wake_holders(queue, awaited)
  in_pieces(records, function(...) redis.call("HSET", queue.sessions, ...) end)
  local became_ready = 0
  in_pieces(ready, function(...) became_ready = became_ready + redis.call("ZADD", queue.ready_sessions, "NX", ...) end)
  local over = any_idle and redis.call("ZCARD", queue.idle_sessions) - idle_at_most or 0
  if over > 0 then
    local forgotten = redis.call("ZPOPMIN", queue.idle_sessions, math.min(over, 1000))
    for i = 1, #forgotten, 2 do
      redis.call("HDEL", queue.sessions, forgotten[i])
    end
  end
  return became_ready
end
