-- read_operations reads the operations of a transaction from a place of args on: see the header of transact.
local function read_operations(args, at)
  local operations = {}
  while at <= #args do
    local operation = {
      verb = args[at], place = tonumber(args[at + 1]), sub = args[at + 2], token = args[at + 3], first = args[at + 4],
      second = args[at + 5], count = tonumber(args[at + 6]), extras = tonumber(args[at + 7]), from = at + 8,
    }
    local width = operation.verb == "send" and 6 or 1
    at = operation.from + width * operation.count + operation.extras
    operations[#operations + 1] = operation
  end
  return operations
end
