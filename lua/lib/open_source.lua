-- open_source opens a queue for a verb that receives: it carries out what is due, stamps the activity and picks the side
-- that sub names. Returns queue and side, or the reply that refuses the verb (STAT-2). check may give such a reply too; it
-- runs before anything is done. With topics_too the source may be a topic, of which there are only scheduled messages.
--@include open_queue
--@include clear_due
--@include touch
local function open_source(keys, now, sub, check, topics_too)
  local queue = open_queue(keys, now, topics_too and sub == "")
  if not queue then
    return nil, nil, { "ENTITY_NOT_FOUND" }
  end
  local may = queue.status == "ACTIVE" or queue.status == "SEND_DISABLED" or queue.is_topic -- STAT-1: of a topic it is about sends
  if not may then
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
