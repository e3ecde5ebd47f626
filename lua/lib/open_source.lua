-- open_source opens a queue for a verb that receives: it carries out what is due, stamps the activity and picks the side
-- that sub names. Returns queue and side, or the reply that refuses the verb (STAT-2). check may give such a reply too; it
-- runs before anything is done.
--@include open_queue
--@include clear_due
--@include touch
local function open_source(keys, now, sub, check)
  local queue = open_queue(keys, now)
  if not queue then
    return nil, nil, { "ENTITY_NOT_FOUND" }
  end
  if queue.status ~= "ACTIVE" and queue.status ~= "SEND_DISABLED" then
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
