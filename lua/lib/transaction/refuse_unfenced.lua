-- refuse_unfenced is lacks_fence for the members of a transaction: its caller must wait for the levels that any of them
-- asks for, "<level>,<level>..." in order. awaited is as there.
--@include base/is_before
local function refuse_unfenced(members, awaited)
  local levels, seen = {}, {}
  for _, member in ipairs(members) do
    local queue = member.queue
    local is_plain = not queue or queue.kind == "queue" or queue.kind == "subscription"
    local level = not is_plain and redis.call("HGET", queue.entity, "durability") or "SIDECAR"
    if not seen[level] then
      seen[level], levels[#levels + 1] = true, level
    end
  end
  table.sort(levels, is_before)
  local all = table.concat(levels, ",")
  return all ~= (awaited or "SIDECAR") and { "NEEDS_FENCE", all } or nil
end
