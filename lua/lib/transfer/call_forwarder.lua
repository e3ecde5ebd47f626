-- call_forwarder makes a sweeper come at once to an entity that has something to forward (FWD-1), unless one was
-- called; sweep takes the call back when nothing is left. alarm is the one to set so far, "0" for none. Returns the one
-- to set.
--@include base/text
local function call_forwarder(entity, alarm)
  if entity.forwarder_called then
    return alarm
  end
  entity.forwarder_called = true
  redis.call("HSET", entity.entity, "forwarder_called", 1)
  return text(entity.now)
end
