-- change_properties replaces the changed properties of a message by "<bytes more than as sent>:<properties>"
-- (SETTLE-5). An empty text changes nothing.
--@include base/text
--@include topic/raise_topic_bound
local function change_properties(queue, side, position, changed)
  if changed == "" then
    return
  end
  local before = redis.call("HGET", side.modified, position) or "0"
  redis.call("HSET", side.modified, position, changed)
  local more = string.match(changed, "^%-?%d+") - string.match(before, "^%-?%d+")
  redis.call("HINCRBY", queue.entity, side.prefix .. "bytes", text(more))
  raise_topic_bound(queue.owner, queue.entity, more)
end
