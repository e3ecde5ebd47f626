-- live_locks tells which of the given locks hold at this instant (LOCK-7). A lock named twice holds once, because the
-- first verb ends it. Returns a list of true and false in the order given, and the list of those that hold.
local function live_locks(locks, wanted, now)
  local live, held, seen, n = {}, {}, {}, 0
  for i, ends in ipairs(redis.call("ZMSCORE", locks, unpack(wanted))) do
    local lock = wanted[i]
    if ends and tonumber(ends) > now and not seen[lock] then
      n = n + 1
      live[i], seen[lock], held[n] = true, true, lock
    else
      live[i] = false
    end
  end
  return live, held
end
