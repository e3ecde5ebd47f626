-- refuse_forwarding returns the reply that refuses to receive from a queue that forwards all it gets (FWD-2), nil when
-- it does not. Its dead letters can be received even if they are forwarded.
local function refuse_forwarding(queue, side)
  return side == queue.main and side.forwards and { "FORWARDS_ALL", side.forwards } or nil
end
