-- append_message stores a message under the next number of a side: behind the others, where it can expire in expiry
-- too. message has size, payload, ttl_ms, and perhaps ends_ms, session and origin, its number in the topic it is a copy
-- of. A target is its own side. Returns the number.
--@include base/text
--@include log/lifetime
--@include due/expect
--@include session/append_to_session
local function append_message(entity, side, message, origin)
  local times, expires = lifetime(entity.now, message.ttl_ms, message.ends_ms)
  side.sequence = side.sequence + 1
  local number = text(side.sequence)
  if expires then
    redis.call("ZADD", side.expiry, expires, number)
    expect(entity, tonumber(expires))
  end
  if entity.has_sessions then -- whether it can be received is up to its session
    append_to_session(entity, side.log, number, message.size, times, message.payload, message.session, origin)
    return number
  end
  if origin then
    redis.call("XADD", side.log, number .. "-" .. message.size, times, message.payload, "e", origin)
  else
    redis.call("XADD", side.log, number .. "-" .. message.size, times, message.payload)
  end
  side.newly_available = side.newly_available + 1
  return number
end
