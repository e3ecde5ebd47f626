-- history_capacity returns how many more keys the history may take (DUP-11).
local function history_capacity(target)
  local live = redis.call("ZCOUNT", target.history_times,
    "(" .. string.format("%d", target.now - target.duplicate_window_ms), "+inf")
  return target.duplicate_max_entries - live
end
