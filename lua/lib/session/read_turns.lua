-- read_turns reads the calls of turn.lua, which begin at a place of args. Returns the turns and the tokens of their
-- sessions, whether any wants messages and whether any completes some.
local function read_turns(args, at)
  local turns, tokens, wants, completes = {}, {}, false, false
  while at <= #args do
    local count, bytes = tonumber(args[at + 4]), args[at + 2]
    local turn = {
      token = args[at], limit = tonumber(args[at + 1]), left = tonumber(bytes), is_empty = string.byte(bytes) ~= 43,
      register = args[at + 3], first = at + 5, last = at + 4 + 2 * count, done = "-",
    }
    wants, completes = wants or turn.limit > 0, completes or count > 0
    turns[#turns + 1], tokens[#tokens + 1] = turn, turn.token
    at = turn.last + 1
  end
  return turns, tokens, wants, completes
end
