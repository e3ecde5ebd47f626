-- dead_letter_unlocked makes a message a dead letter whose lock was ended, because the application says so (SETTLE-6).
-- reason and description may be nil (SETTLE-7).
--@include dead_letter/dead_letter_entry
--@include log/entry_at
--@include entity/note_orphan
local function dead_letter_unlocked(queue, position, reason, description)
  local main = queue.main
  redis.call("ZREM", main.deferred, position)
  local entry = entry_at(main, position)
  if entry then
    dead_letter_entry(queue, entry, redis.call("HGET", main.deliveries, position) or "0", "a", reason, description)
  else
    note_orphan(queue, position)
  end
end
