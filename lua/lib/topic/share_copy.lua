-- share_copy adds a copy to those whose bodies are stored once, with the topic (docs/decisions/0037). What it adds is
-- written by append_shared and store_group.
--@include topic/store_group
local function share_copy(topic, target, copy, origin)
  local group = topic.group
  if not copy.place then
    local number = tonumber(origin)
    if group and (group.length + #copy.payload > 32128 or number > group.first + 31) then
      store_group(topic)
      group = nil
    end
    group = group or {
      first = number, length = 0, uses = 0, bodies = {}, sizes = {}, origins = {}, targets = {}, texts = {},
    }
    topic.group = group
    copy.place, group.last, group.length = #group.sizes + 1, number, group.length + #copy.payload
    group.sizes[copy.place], group.origins[copy.place] = copy.size, copy.size .. ":" .. origin
    group.bodies[2 * copy.place - 1], group.bodies[2 * copy.place] = origin, copy.payload
  end
  if not target.places then
    target.places, target.shared_bytes = {}, 0
    group.targets[#group.targets + 1] = target
  end
  target.places[#target.places + 1] = copy.place
  target.sequence, target.newly_available = target.sequence + 1, target.newly_available + 1
  target.shared_bytes, target.added = target.shared_bytes + copy.bytes, target.added + copy.bytes
end
