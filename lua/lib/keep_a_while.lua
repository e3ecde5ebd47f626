-- keep_a_while puts off the removal of an entity that nobody uses but that has dead letters to be kept (IDLE-9): they may go without anybody
-- using it, when they expire or with a subscription. Returns when to look again.
--@include text
local function keep_a_while(entity, now)
  local again = text(now + 30000)
  redis.call("HSET", entity, "alarm_ms", again)
  return again
end
