-- expire_marked_sessions goes on with the sessions whose messages are to be ended together (expire_slice), mark by
-- mark.
--@include expiry/expire_slice
--@include expiry/expiring_up_to
local function expire_marked_sessions(queue)
  for number, kind, session in string.gmatch(queue.expiring, "(%d+)(d?):([^%z]*)%z") do
    if kind == "d" or not expiring_up_to(queue, session, "d") then
      expire_slice(queue, queue.main, session, kind, tonumber(number))
    end
  end
end
