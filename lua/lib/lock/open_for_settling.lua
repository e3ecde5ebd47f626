-- open_for_settling opens a queue for a verb that ends locks, and stamps the use. token is that of a session, "" for
-- none. owner is the key of the entity whose quota counts; nil if the verb adds no bytes. Returns queue and side, or as
-- third result the reply that refuses the verb.
--@include entity/open_queue
--@include entity/touch
--@include session/session_mismatch
local function open_for_settling(keys, now, sub, token, owner)
  local queue = open_queue(keys, now)
  if not queue then
    return nil, nil, { "ENTITY_NOT_FOUND" }
  end
  local side = sub == "" and queue.main or queue.dead
  local wrong = session_mismatch(side, token)
  if wrong then
    return nil, nil, { wrong }
  end
  if owner then
    queue.owner = owner
    redis.call("HLEN", owner) -- as in lib/base/check_key_types
  end
  touch(queue.entity, now)
  return queue, side
end
