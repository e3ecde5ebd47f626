-- append_shared writes the log entry of the copies that share_copy has added for a subscription, if any: a chunk
-- (docs/decisions/0035) whose bodies are with the topic. A lone small message is cheaper with its body.
--@include base/text
local function append_shared(topic, target)
  local group, places = topic.group, target.places
  if not places then
    return
  end
  local payload = group.bodies[2 * places[1]]
  if #places == 1 and #payload < 512 then
    redis.call("XADD", target.log, text(target.sequence) .. "-" .. text(target.shared_bytes), topic.immortal, payload,
      "e", group.bodies[2 * places[1] - 1])
    target.places = nil
    return
  end
  local key = #places == #group.sizes and #places or table.concat(places, ",")
  local both = group.texts[key]
  if not both then
    local sizes, origins = {}, {}
    for i, place in ipairs(places) do
      sizes[i], origins[i] = group.sizes[place], group.origins[place]
    end
    both = { table.concat(sizes, ","), table.concat(origins, ",") }
    group.texts[key] = both
  end
  if target.chunked == 0 then
    -- Versions before this one would take bodies that are elsewhere for lost ones. The first key makes those without
    -- chunks fail before they do anything, and the second, which this version does not read, those with chunks.
    local note = "this subscription has messages that only a newer version of Sidebus can read"
    redis.call("SET", target.ready_sessions, note)
    redis.call("SET", target.stop, note)
    redis.call("DEL", target.chunks) -- of a subscription of this name that such a version deleted
  end
  local first = text(target.sequence - #places + 1)
  local id = first .. "-" .. text(target.shared_bytes)
  redis.call("XADD", target.log, id, topic.immortal, "\4", "z", both[2])
  local member = id .. ":" .. text(target.sequence) .. ":" .. both[1] .. ":" .. text(group.first)
  redis.call("ZADD", target.chunks, first, member)
  target.chunked, target.chunk_extra = target.sequence, target.chunk_extra + #places - 1
  target.places, group.uses = nil, group.uses + 1
end
