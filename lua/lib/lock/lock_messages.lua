-- lock_messages locks messages until now + LockDuration (LOCK-1). They must be off ready, delayed and deferred, and off
-- expiry or there with the sign turned. Returns the end of the locks in ms.
--@include due/expect
--@include base/text
local function lock_messages(queue, side, positions, nonce)
  local until_ms = queue.now + queue.lock_duration_ms
  local ends, locks = text(until_ms), {}
  for i, position in ipairs(positions) do
    locks[2 * i - 1], locks[2 * i] = ends, position .. nonce
  end
  if #positions > 0 then
    redis.call("ZADD", side.locks, unpack(locks))
    expect(queue, until_ms)
  end
  return ends
end
