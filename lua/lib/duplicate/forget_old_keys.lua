-- forget_old_keys removes keys from the history whose window has ended (DUP-4): at most limit, and at most 1,000 in one
-- script. The rest goes with the alarm (history_ends). Returns how many it removed.
--@include base/in_pieces
local function forget_old_keys(target, limit)
  local over = target.now - target.duplicate_window_ms
  local old = redis.call("ZRANGEBYSCORE", target.history_times, "-inf", over, "LIMIT", 0, math.min(limit, 1000))
  in_pieces(old, function(...)
    redis.call("ZREM", target.history_times, ...)
    redis.call("HDEL", target.history, ...)
  end)
  return #old
end
