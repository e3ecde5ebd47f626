-- refuse_settlement returns why the locks of an operation of a transaction cannot be ended, as { code, details ... },
-- nil when they can. The first lock that is lost, or whose changes are refused, decides (SETTLE-2, SETTLE-5).
--@include base/slice
--@include lock/lost_lock
--@include session/held_session
--@include session/session_mismatch
local function refuse_settlement(queue, operation, args)
  if queue.is_topic then
    return { "ENTITY_NOT_FOUND" }
  end
  local side, session = operation.sub == "" and queue.main or queue.dead, nil
  local wrong = session_mismatch(side, operation.token)
  if wrong then
    return { wrong }
  end
  if side.by_session then
    session = held_session(queue, operation.token)
    if not session then
      return { "SESSION_LOCK_LOST" }
    end
  end
  local last = operation.from + operation.count - 1
  local at = lost_lock(queue, side, slice(args, operation.from, last), session)
  for i = 1, operation.extras do
    if args[last + i] == "!" and not (at and at < i) then
      return { "CHANGES", i - 1 }
    end
  end
  return at and { "MESSAGE_LOCK_LOST", at } or nil
end
