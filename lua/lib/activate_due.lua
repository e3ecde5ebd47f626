-- activate_due enqueues at most 100 scheduled messages whose time has come, as if they were sent now: at the tail, with a
-- new number and a life that begins (SCHED-3, SCHED-6, MSG-7, TTL-17).
--@include entry_at
--@include lifetime
--@include session_of
--@include append_to_session
--@include text
--@include note_end
local function activate_due(queue)
  local main = queue.main
  local sequence = main.sequence
  for _, member in ipairs(redis.call("ZRANGEBYSCORE", queue.due, "-inf", queue.now, "LIMIT", 0, 100)) do
    if queue.slice_bytes <= 0 then
      break
    end
    local entry = entry_at(queue.scheduled, string.match(member, "[1-9]%d*$"))
    redis.call("ZREM", queue.due, member)
    if entry then
      local size = string.match(entry[1], "%d+$")
      local times, expires = lifetime(queue.now, tonumber(string.match(entry[2][1], "%-?%d+$")))
      sequence = sequence + 1
      local number = text(sequence)
      redis.call("XDEL", queue.scheduled, entry[1])
      redis.call("ZREM", queue.scheduled_ids, entry[2][4] .. "\0" .. member)
      if main.by_session then
        local session = session_of(entry)
        redis.call("ZREM", main.by_session, session_member(session, "s", string.match(entry[1], "^%d+")))
        append_to_session(queue, main.log, number, size, times, entry[2][2], session)
        touch_session(queue, session)
      else
        redis.call("XADD", main.log, number .. "-" .. size, times, entry[2][2])
        main.came = main.came + 1
      end
      if expires then
        redis.call("ZADD", main.expiry, expires, number)
      end
      queue.slice_bytes = queue.slice_bytes - size
    end
  end
  if sequence > main.sequence then
    main.sequence = sequence
    redis.call("HSET", queue.entity, "sequence", text(sequence))
    note_end(queue, queue.now) -- until now it had scheduled messages (IDLE-2)
  end
end
