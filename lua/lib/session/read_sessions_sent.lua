-- read_sessions_sent reads the records of all sessions that the calls of a send name, at once. The calls begin at a
-- place of args, and each of their messages takes width items: see the header of send.
--@include request/read_request
--@include session/read_sessions
local function read_sessions_sent(target, args, at, width)
  local sessions, seen = {}, {}
  while at <= #args do
    local last = at + width * read_request(args[at])
    for i = at + 5, last, width do
      if not seen[args[i]] then
        seen[args[i]], sessions[#sessions + 1] = true, args[i]
      end
    end
    at = last + 1
  end
  read_sessions(target, sessions)
end
