-- store_group writes what share_copy has added to the group of bodies of a topic, if any. The number of a group is that
-- of its first message. Under it, body_uses has 32 times the number of log entries that refer to the group, plus the
-- number of its last message less that of its first: see log/release_bodies.
--@include base/text
--@include topic/append_shared
local function store_group(topic)
  local group = topic.group
  if not group then
    return
  end
  for _, target in ipairs(group.targets) do
    append_shared(topic, target)
  end
  if group.uses > 0 then
    redis.call("HSET", topic.bodies, unpack(group.bodies))
    redis.call("HSET", topic.body_uses, text(group.first), text(32 * group.uses + group.last - group.first))
  end
  topic.group = nil
end
