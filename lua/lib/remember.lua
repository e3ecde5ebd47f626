-- remember puts a message's key into the duplicate history (DUP-1, DUP-10).
--@include text
--@include expect
local function remember(target, key, number)
  redis.call("HSET", target.history, key, text(target.now) .. ":" .. text(number))
  redis.call("ZADD", target.history_times, target.now, key)
  if target.alarm == 0 then
    expect(target, target.now + target.duplicate_window_ms) -- see next_alarm
  end
end
