-- live_locks tells which of the given locks hold at this instant (LOCK-7). A lock named twice holds once, because the
-- first verb ends it. Returns a list of true and false in the order given.
local function live_locks(locks, wanted, now)
  local scores = redis.call("ZMSCORE", locks, unpack(wanted))
  local live, seen = {}, {}
  for i, lock in ipairs(wanted) do
    live[i] = scores[i] ~= false and tonumber(scores[i]) > now and not seen[lock]
    seen[lock] = true
  end
  return live
end
