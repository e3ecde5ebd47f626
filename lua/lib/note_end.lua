-- note_end notes until when something was held, for clear_due: that long the queue was in use (IDLE-5). ends may be nil.
local function note_end(queue, ends)
  if ends and ends > (queue.used or 0) then
    queue.used = ends
  end
end
