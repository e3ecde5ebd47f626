-- delete_own deletes messages that have entries of their own and whose locks hold. Their ids, "<position>-<size>", come
-- from tokens of clients, so XDEL must report how many the log has. A message that is there under another id stays: its
-- token was altered. Returns the bytes deleted, and the set of wrong ids, nil when there is none.
local function delete_own(side, ids)
  local wrong, bytes = nil, 0
  if #ids > 0 and redis.call("XDEL", side.log, unpack(ids)) < #ids then
    wrong = {}
    for _, id in ipairs(ids) do
      local position = string.match(id, "^%d+")
      wrong[id] = #redis.call("XRANGE", side.log, position, position) > 0
    end
  end
  for _, id in ipairs(ids) do
    if not (wrong and wrong[id]) then
      bytes = bytes + string.sub(id, string.find(id, "-", 1, true) + 1) -- a third of the time of a pattern
    end
  end
  return bytes, wrong
end
