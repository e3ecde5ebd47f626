-- expect notes that something becomes due on an entity at an instant, for close_queue and write_alarm.
local function expect(queue, at)
  if not queue.expected or at < queue.expected then
    queue.expected = at
  end
end
