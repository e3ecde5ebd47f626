-- renew_runs sets the end of the runs of which all messages are to be renewed and whose locks hold. positions are
-- those to renew by nonce, each a text in the form of a run. Returns which of the runs, by their place in nonces, and
-- whether there are any. Their messages do not expire.
local function renew_runs(side, nonces, positions, now, locked_until)
  local whole, some = {}, false
  if #nonces == 0 or redis.call("EXISTS", side.runs) == 0 then
    return whole, some
  end
  local runs = redis.call("HMGET", side.runs, unpack(nonces))
  for i, ends in ipairs(redis.call("ZMSCORE", side.run_locks, unpack(nonces))) do
    if ends and tonumber(ends) > now and runs[i] == positions[i] then
      whole[i], some = true, true
      redis.call("ZADD", side.run_locks, "XX", locked_until, nonces[i])
    end
  end
  return whole, some
end
