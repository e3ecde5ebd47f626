-- bury_entry moves a message of the main side to the dead-letter queue, in one step and with all that belongs to it (DLQ-16,
-- DLQ-17). reason and description may be nil (SETTLE-7). It must be off every index but deliveries, expiry and modified.
-- cause says in one letter what brought it there: a = the application, m = MaxDeliveryCount, t = TimeToLive; whoever ran the
-- script is told (DLQ-24).
--@include text
--@include expect
--@include forget_modified
--@include session_of
--@include session_record
--@include touch_session
local function bury_entry(queue, entry, count, cause, reason, description)
  local main, dead = queue.main, queue.dead
  local sequence, size = string.match(entry[1], "^(%d+)%-(%d+)")
  local position = text(redis.call("HINCRBY", queue.entity, "dead_sequence", 1))
  dead.sequence = tonumber(position)
  local fields = { unpack(entry[2]) } -- times, payload, and of a session s and q
  for _, pair in ipairs({ { "n", sequence }, { "c", count }, { "a", text(queue.now) }, { "r", reason }, { "d", description } }) do
    if pair[2] then
      fields[#fields + 1], fields[#fields + 2] = pair[1], pair[2]
    end
  end
  redis.call("XADD", dead.log, position .. "-" .. size, unpack(fields))
  redis.call("ZADD", dead.numbers, sequence, position)
  if queue.dead_letter_ttl_ms >= 0 then
    local expires = queue.now + queue.dead_letter_ttl_ms
    redis.call("ZADD", dead.expiry, text(expires), position)
    expect(queue, expires)
  end
  local changed = redis.call("HGET", main.modified, sequence)
  if changed then
    redis.call("HSET", dead.modified, position, changed)
  end
  local bytes = size + forget_modified(main, sequence)
  redis.call("XDEL", main.log, entry[1])
  redis.call("HDEL", main.deliveries, sequence)
  redis.call("ZREM", main.expiry, sequence)
  redis.call("HINCRBY", queue.entity, "bytes", text(-bytes))
  redis.call("HINCRBY", queue.entity, "dead_bytes", text(bytes))
  dead.came = dead.came + 1
  if main.by_session and queue.blocks_sessions then
    local session = session_of(entry)
    session_record(queue, session).blocked = "b" -- until somebody has looked into it (SESS-29)
    if not queue.any_blocked then
      queue.any_blocked = true
      redis.call("HSET", queue.entity, "blocked", 1) -- so that as long as none was, no receive need ask
    end
    redis.call("ZADD", queue.by_session, 0, session .. "\0b")
    touch_session(queue, session)
  end
  queue.buried = (queue.buried or "") .. " " .. sequence .. cause
  if queue.slice_bytes then
    queue.slice_bytes = queue.slice_bytes - size
  end
end
