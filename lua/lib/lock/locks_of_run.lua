-- locks_of_run returns the locks of all messages of a run, "<position>:<nonce>", in order.
local function locks_of_run(nonce, run)
  local locks = {}
  for first, last in string.gmatch(run, "(%d+)%-(%d+)") do
    for position = tonumber(first), tonumber(last) do
      locks[#locks + 1] = string.format("%d:%s", position, nonce)
    end
  end
  return locks
end
