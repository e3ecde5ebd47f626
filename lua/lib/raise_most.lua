-- raise_most keeps most_bytes of a topic true when one of its subscriptions comes to hold more: no less than all of them hold together
-- (README.md). owner is the entity whose quota counts, for a queue its own.
--@include text
local function raise_most(owner, entity, more)
  if owner ~= entity and more > 0 then
    redis.call("HINCRBY", owner, "most_bytes", text(more))
  end
end
