-- refuse_send returns why the messages of an operation of a transaction cannot be sent, as { code, details ... }, nil
-- when they can: then they are counted in the quota, which may be nil. NEEDS_ALL says that the bytes of the topic must
-- be added up first.
--@include intake/load_of_send
--@include intake/refuse
--@include intake/reserve
--@include transaction/lacks_quota
--@include transaction/open_intake
local function refuse_send(member, operation, quota, args)
  local queue = member.queue
  if queue.is_topic ~= (operation.first == "topic") or not quota or queue.owner ~= queue.entity then
    return { "ENTITY_NOT_FOUND" }
  end
  open_intake(member, quota)
  local load = load_of_send(quota, args, operation.from, operation.count, 6)
  if lacks_quota(quota, load.bytes or 0) then
    return { "NEEDS_ALL" }
  end
  local refused = refuse(quota, load)
  if not refused then
    reserve(quota, load)
    operation.load = load
  end
  return refused
end
