-- forget_old removes at most limit message ids from the duplicate history whose window is over (DUP-4).
local function forget_old(target, limit)
  local over = target.now - target.duplicate_window_ms
  local old = redis.call("ZRANGEBYSCORE", target.history_times, "-inf", over, "LIMIT", 0, limit)
  if #old > 0 then
    redis.call("ZREM", target.history_times, unpack(old))
    redis.call("HDEL", target.history, unpack(old))
  end
end
