-- sides_to_forward returns the letters of the sides of a queue that have something to forward (FWD-1): m = main, d =
-- dead, for available messages or a transfer under way. If none has, it takes the call for a forwarder back, so that
-- the next message calls again. It looks for a message and does not count them: where a person has changed keys, the
-- count may be wrong for ever, and the forwarder would run without end.
--@include available/next_fresh
local function sides_to_forward(queue)
  if queue.is_topic then
    return ""
  end
  local function has_some(side)
    return side.forwards and (redis.call("EXISTS", side.ready) == 1 or #next_fresh(side, 1) > 0)
  end
  local under_way, letters = redis.call("HMGET", queue.entity, "transfer", "dead_transfer"), ""
  if under_way[1] or has_some(queue.main) then
    letters = "m"
  end
  if under_way[2] or has_some(queue.dead) then
    letters = letters .. "d"
  end
  if letters == "" and queue.forwarder_called then
    redis.call("HDEL", queue.entity, "forwarder_called")
  elseif letters ~= "" and not queue.forwarder_called then
    redis.call("HSET", queue.entity, "forwarder_called", 1)
  end
  return letters
end
