-- expect notes that something will be due on a queue at an instant, for close_queue.
local function expect(queue, at)
  if not queue.expected or at < queue.expected then
    queue.expected = at
  end
end
