-- close_sessions brings in order what follows from the changes of a script to sessions, and writes their records: who is woken,
-- which sessions are ready to be accepted (SESS-12, SESS-13), which are idle, and when a state is to be forgotten. Returns
-- how many sessions became ready.
--@include session_record
--@include write_session
--@include receivable
--@include wake_holder
--@include is_at_rest
--@include first_in_session
--@include expect
local function close_sessions(queue)
  local idle_at_most = 100000 -- semantics.MaxIdleSessions
  local any_idle = redis.call("EXISTS", queue.idle_sessions) == 1
  local became_ready = 0

  local function close_free(session, record, what)
    local ready = record.blocked == "" and #receivable(queue, session, 1) > 0
    if ready then
      became_ready = became_ready + redis.call("ZADD", queue.ready_sessions, "NX", queue.now, session)
    elseif what ~= "added" then
      redis.call("ZREM", queue.ready_sessions, session)
    end
    if any_idle then
      redis.call("ZREM", queue.idle_sessions, session)
    end
    if what == "added" then
      return true
    end
    if is_at_rest(queue, session, record) then
      if record.sequence == 0 then
        return false
      end
      redis.call("ZADD", queue.idle_sessions, queue.now, session)
      any_idle = true
    elseif record.version > 0 and queue.state_ttl_ms >= 0
      and #redis.call("ZRANGE", queue.by_session, "[" .. session .. "\0", "(" .. session .. "\1", "BYLEX", "LIMIT", 0, 2) == 1 then
      local due = record.activity + queue.state_ttl_ms -- nothing but its state is left (SESS-33c)
      redis.call("ZADD", queue.states_due, due, session)
      expect(queue, due)
    end
    return true
  end

  for session, what in pairs(queue.touched) do
    local record, keep = session_record(queue, session), true
    if record.token ~= "" then
      wake_holder(queue, session)
    else
      keep = close_free(session, record, what)
    end
    if keep then
      write_session(queue, session, record)
    elseif record.stored then
      redis.call("HDEL", queue.sessions, session)
    end
  end
  queue.touched = {}
  local over = any_idle and redis.call("ZCARD", queue.idle_sessions) - idle_at_most or 0
  if over > 0 then
    local forgotten = redis.call("ZPOPMIN", queue.idle_sessions, math.min(over, 1000))
    for i = 1, #forgotten, 2 do
      redis.call("HDEL", queue.sessions, forgotten[i])
    end
  end
  return became_ready
end
