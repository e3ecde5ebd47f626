-- ensure_unmatched creates the subscription of a topic that forwards what no other one gets (TOPIC-3), unless there is
-- one or it is to forward nowhere. fields are its name and options.
--@include entity/write_entity
--@include topic/route_flags
--@include entity/forward_path
local function ensure_unmatched(subscriptions, unmatched, now, to, fields)
  if not forward_path(to) then
    return
  end
  if redis.call("EXISTS", unmatched) == 0 then
    write_entity(unmatched, "subscription", now, fields)
    redis.call("HSET", subscriptions, "$unmatched", route_flags(unmatched))
  end
  redis.call("HSET", unmatched, "forward_to", to)
end
