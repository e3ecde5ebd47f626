-- keep_unmatched sees to it that a topic has the subscription that forwards what no other one gets (TOPIC-3), if it is to be forwarded
-- anywhere; else one that is there stays, and forwards what it has. fields are its name and options, with which it is made.
--@include write_entity
--@include route_flags
--@include forwards
local function keep_unmatched(subscriptions, unmatched, now, to, fields)
  if not forwards(to) then
    return
  end
  if redis.call("EXISTS", unmatched) == 0 then
    write_entity(unmatched, "subscription", now, fields)
    redis.call("HSET", subscriptions, "$unmatched", route_flags(unmatched))
  end
  redis.call("HSET", unmatched, "forward_to", to)
end
