-- history returns the name of what this server has done since it became the primary. A server that was restarted, and
-- one that another one replaced, has another name (docs/decisions/0054). "unknown" on a server that does not say.
local function history()
  local info = redis.call("INFO", "replication")
  local _, ends = string.find(info, "master_replid:", 1, true)
  return ends and string.sub(info, ends + 1, ends + 40) or "unknown"
end
