-- remember_key puts a message's key into the history (DUP-1, DUP-10).
--@include base/text
--@include due/expect
--@include duplicate/history_ends
local function remember_key(target, key, number)
  redis.call("HSET", target.history, key, text(target.now) .. ":" .. text(number))
  redis.call("ZADD", target.history_times, target.now, key)
  expect(target, history_ends(target, target.now))
end
