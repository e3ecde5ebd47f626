-- modify replaces the changed properties of a message by a new value "<bytes more than as sent>:<properties>" (SETTLE-5). An
-- empty one changes nothing.
--@include text
--@include raise_most
local function modify(queue, side, position, changed)
  if changed == "" then
    return
  end
  local before = redis.call("HGET", side.modified, position) or "0"
  redis.call("HSET", side.modified, position, changed)
  local more = string.match(changed, "^%-?%d+") - string.match(before, "^%-?%d+")
  redis.call("HINCRBY", queue.entity, side.prefix .. "bytes", text(more))
  raise_most(queue.owner, queue.entity, more)
end
