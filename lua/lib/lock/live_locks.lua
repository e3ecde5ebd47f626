-- live_locks returns which of the given locks hold now (LOCK-7), as true and false in the order given, and the list of
-- those that hold. A lock named twice holds once, because the first verb ends it.
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
