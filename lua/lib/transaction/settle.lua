-- settle ends the locks of an operation of a transaction, which refuse_settlement has let through.
--@include base/slice
--@include dead_letter/dead_letter_unlocked
--@include lock/complete_unlocked
--@include lock/defer_message
--@include lock/return_message
--@include lock/settle_locks
local function settle(queue, operation, args)
  local side, verb = operation.sub == "" and queue.main or queue.dead, operation.verb
  local last = operation.from + operation.count - 1
  local wanted, extras = slice(args, operation.from, last), slice(args, last + 1, last + operation.extras)
  local ids, first, second = {}, operation.first, operation.second
  if verb == "complete" then
    for _, id in ipairs(extras) do
      ids[string.match(id, "^%d+")] = id
    end
    extras = {}
  end
  settle_locks(queue, side, wanted, extras, operation.token, function(position, session)
    if verb == "complete" then
      complete_unlocked(queue, side, position, ids[position])
    elseif verb == "defer" then
      defer_message(queue, side, position, session)
    elseif verb == "dead_letter" then
      dead_letter_unlocked(queue, position, first ~= "" and string.sub(first, 2) or nil,
        second ~= "" and string.sub(second, 2) or nil)
    else
      local delay_ms = tonumber(first)
      if delay_ms < 0 then
        delay_ms = side == queue.main and queue.redelivery_delay_ms or 0
      end
      return_message(queue, side, position, true, queue.now + delay_ms, session, second == "1")
    end
  end)
end
