-- leave_runs makes a lock for each of the given ones, "<position>:<nonce>", whose message is in a run. Tokens and ends
-- stay the same. The given locks may be others, too.
--@include lock/run_without
--@include lock/group_by_nonce
--@include lock/save_run
--@include base/in_pieces
--@include base/text
local function leave_runs(entity, side, wanted)
  if not side.runs or #wanted == 0 or redis.call("EXISTS", side.runs) == 0 then
    return
  end
  local nonces, positions = group_by_nonce(wanted)
  local runs, before = {}, side.run_messages
  in_pieces(nonces, function(...)
    for _, run in ipairs(redis.call("HMGET", side.runs, ...)) do
      runs[#runs + 1] = run
    end
  end)
  for i, nonce in ipairs(nonces) do
    local ends = runs[i] and redis.call("ZSCORE", side.run_locks, nonce)
    if ends then
      local left, taken, count = run_without(runs[i], positions[nonce])
      local locks = {}
      for n = 1, #taken, 2 do
        for position = taken[n], taken[n + 1] do
          locks[#locks + 1], locks[#locks + 2] = ends, text(position) .. ":" .. nonce
        end
      end
      if count > 0 then
        in_pieces(locks, function(...) redis.call("ZADD", side.locks, ...) end)
        side.run_messages = side.run_messages - count
        save_run(side, nonce, left, ends)
      end
    end
  end
  if before - side.run_messages > 0 then
    redis.call("HSET", entity, "run_messages", text(side.run_messages))
  end
end
