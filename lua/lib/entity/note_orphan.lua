-- note_orphan notes that something was dropped because its message is not in the log (docs/decisions/0013), for
-- close_queue.
local function note_orphan(queue, position)
  queue.orphans = (queue.orphans or "") .. " " .. position .. "!"
end
