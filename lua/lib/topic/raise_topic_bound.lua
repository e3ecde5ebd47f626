-- raise_topic_bound keeps most_bytes of a topic no less than all its subscriptions hold, when one comes to hold more
-- (README). owner is the entity whose quota counts, for a queue its own.
--@include base/text
local function raise_topic_bound(owner, entity, more)
  if owner ~= entity and more > 0 then
    redis.call("HINCRBY", owner, "most_bytes", text(more))
  end
end
