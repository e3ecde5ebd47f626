-- open_source opens a queue for a verb that receives: it does what is due, stamps the use, and picks the side that sub
-- names. Returns queue and side, or as third result the reply that refuses the verb (STAT-2). check may return such a
-- reply too; it runs before anything is done. topics_too is as in open_queue.
--@include entity/open_queue
--@include entity/can_receive
--@include due/clear_due
--@include entity/touch
local function open_source(keys, now, sub, check, topics_too)
  local queue = open_queue(keys, now, topics_too and sub == "")
  if not queue then
    return nil, nil, { "ENTITY_NOT_FOUND" }
  end
  -- STAT-1: of a topic it is about sends
  if not can_receive(queue.status) and not queue.is_topic then
    return nil, nil, { "ENTITY_DISABLED", queue.status }
  end
  local side = sub == "" and queue.main or queue.dead
  local refusal = check and check(queue, side)
  if refusal then
    if refusal[1] == "SESSION_LOCK_LOST" then
      touch(queue.entity, now) -- it was for this queue all the same
    end
    return nil, nil, refusal
  end
  clear_due(queue)
  touch(queue.entity, now)
  return queue, side
end
