-- complete_unlocked removes a message whose lock was ended (SETTLE-3). id is its entry in the log, as the token of the
-- client says.
--@include base/text
--@include log/delete_ids
--@include log/entry_at
--@include log/forget_changes
--@include log/remove_entry
local function complete_unlocked(queue, side, position, id)
  redis.call("ZREM", side.deferred, position)
  local bytes, wrong = delete_ids(side, { id })
  if wrong and wrong[id] then -- the lock holds, so the token was altered
    remove_entry(queue, side, entry_at(side, position))
    return
  end
  redis.call("HDEL", side.deliveries, position)
  redis.call("ZREM", side.expiry, position)
  if side.numbers then
    redis.call("ZREM", side.numbers, position)
  end
  redis.call("HINCRBY", queue.entity, side.prefix .. "bytes", text(-bytes - forget_changes(side, position)))
end
