-- refuse_cancel returns why the scheduled messages of an operation of a transaction cannot be cancelled, as { code,
-- details ... }, nil when they can: then no other operation can cancel them, and operation.members says where they are.
--@include base/slice
--@include entity/can_send
--@include schedule/find_scheduled
local function refuse_cancel(queue, operation, args)
  local missing
  if not can_send(queue.status) then
    return { "ENTITY_DISABLED", queue.status }
  end
  local wanted = slice(args, operation.from, operation.from + operation.count - 1)
  operation.members, missing = find_scheduled(queue, wanted)
  queue.cancelled = queue.cancelled or {}
  local forgets = redis.call("HGET", queue.entity, "forget_on_cancel") == "1"
  for i, number in ipairs(#missing == 0 and wanted or {}) do
    if queue.cancelled[operation.members[i]] then
      missing[#missing + 1] = number
    end
    queue.cancelled[operation.members[i]] = true
    queue.forgotten[tonumber(number)] = forgets
  end
  return #missing > 0 and { "MESSAGE_NOT_FOUND", unpack(missing) } or nil
end
