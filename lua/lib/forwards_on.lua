-- forwards_on gives the reply that refuses to receive from a queue that forwards all it gets (FWD-2), nil when it does not. Its dead
-- letters can be received whether they are forwarded or not.
local function forwards_on(queue, side)
  return side == queue.main and side.forwards and { "FORWARDS_ALL", side.forwards } or nil
end
