-- postpone_removal puts off the removal of an unused entity that has dead letters to keep (IDLE-9): these may go
-- without any use, when they expire. Returns when to look again.
--@include base/text
local function postpone_removal(entity, now)
  local again = text(now + 30000)
  redis.call("HSET", entity, "alarm_ms", again)
  return again
end
