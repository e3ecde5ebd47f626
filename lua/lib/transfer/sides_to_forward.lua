-- sides_to_forward returns the letters of the sides of a queue that have something to forward (FWD-1): m = main, d =
-- dead, for available messages or a transfer under way. If none has, it takes the call for a forwarder back, so that
-- the next message calls again.
--@include available/count_available
local function sides_to_forward(queue)
  if queue.is_topic then
    return ""
  end
  local under_way, letters = redis.call("HMGET", queue.entity, "transfer", "dead_transfer"), ""
  if under_way[1] or (queue.main.forwards and count_available(queue.main) > 0) then
    letters = "m"
  end
  if under_way[2] or (queue.dead.forwards and count_available(queue.dead) > 0) then
    letters = letters .. "d"
  end
  if letters == "" and queue.forwarder_called then
    redis.call("HDEL", queue.entity, "forwarder_called")
  elseif letters ~= "" and not queue.forwarder_called then
    redis.call("HSET", queue.entity, "forwarder_called", 1)
  end
  return letters
end
