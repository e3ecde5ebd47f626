-- note_held_until notes until when something was held, for clear_due: the queue was in use that long (IDLE-5). ends may
-- be nil.
local function note_held_until(queue, ends)
  if ends and ends > (queue.used or 0) then
    queue.used = ends
  end
end
