-- remove_entry removes a message and frees its bytes (SETTLE-3, QUOTA-12). It must be off locks, ready, delayed
-- and deferred, and below the cursor or in a gap. Returns its bytes.
--@include log/forget_changes
--@include log/delete_entry
--@include base/text
local function remove_entry(queue, side, entry)
  local position, size = string.match(entry[1], "^(%d+)%-(%d+)")
  delete_entry(side, entry)
  redis.call("HDEL", side.deliveries, position)
  redis.call("ZREM", side.expiry, position)
  if side.numbers then
    redis.call("ZREM", side.numbers, position)
  end
  local bytes = size + forget_changes(side, position)
  redis.call("HINCRBY", queue.entity, side.prefix .. "bytes", text(-bytes))
  return bytes
end
