-- delete_ids deletes messages whose locks hold. Their ids, "<position>-<size>", come from tokens of clients, so XDEL
-- must report how many the log has. A message that is there under another id stays: its token was altered. Returns the
-- bytes deleted, and the set of wrong ids, nil when there is none.
--@include log/entry_at
local function delete_ids(log, ids)
  local wrong, bytes = nil, 0
  if redis.call("XDEL", log, unpack(ids)) < #ids then
    wrong = {}
    for _, id in ipairs(ids) do
      wrong[id] = entry_at(log, string.match(id, "^%d+")) ~= nil
    end
  end
  for _, id in ipairs(ids) do
    if not (wrong and wrong[id]) then
      bytes = bytes + string.sub(id, string.find(id, "-", 1, true) + 1) -- a third of the time of a pattern
    end
  end
  return bytes, wrong
end
