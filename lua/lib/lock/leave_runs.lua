-- leave_runs makes a lock for each of the given ones, "<position>:<nonce>", whose message is in a run. Tokens and ends
-- stay the same. The given locks may be others, too.
--@include lock/run_without
--@include lock/group_by_nonce
--@include base/in_pieces
--@include base/text
local function leave_runs(entity, side, wanted)
  if not side.runs or #wanted == 0 or redis.call("EXISTS", side.runs) == 0 then
    return
  end
  local nonces, positions = group_by_nonce(wanted)
  local runs, more = {}, 0
  in_pieces(nonces, function(...)
    for _, run in ipairs(redis.call("HMGET", side.runs, ...)) do
      runs[#runs + 1] = run
    end
  end)
  for i, nonce in ipairs(nonces) do
    local ends = runs[i] and redis.call("ZSCORE", side.locks, ":" .. nonce)
    if ends then
      local left, taken, count = run_without(runs[i], positions[nonce])
      local locks = {}
      for n = 1, #taken, 2 do
        for position = taken[n], taken[n + 1] do
          locks[#locks + 1], locks[#locks + 2] = ends, text(position) .. ":" .. nonce
        end
      end
      in_pieces(locks, function(...) redis.call("ZADD", side.locks, ...) end)
      if left then
        redis.call("HSET", side.runs, nonce, left)
      else
        redis.call("HDEL", side.runs, nonce)
        redis.call("ZREM", side.locks, ":" .. nonce)
      end
      more = more + count - (left and 0 or 1)
    end
  end
  if more > 0 then
    side.locked_more = side.locked_more - more
    redis.call("HSET", entity, "locked_more", text(side.locked_more))
  end
end
