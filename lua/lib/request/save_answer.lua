-- save_answer keeps the answer to a call under a request id, the number of its first message or RUNS with all (IDEM-1).
-- It forgets what is older than two minutes and, beyond 10,000 ids or 16 MiB of runs, the oldest. The empty id counts
-- those bytes. The keys have a time to live, so an idle entity keeps nothing.
--@keys answers requests request_times
--@include base/text
--@include request/format_runs
--@include request/run_bytes
--@include request/forget_answers
local function save_answer(requests, request_times, request, answer, now)
  local accepted = text(now)
  local numbers = type(answer) == "table" and "RUNS " .. format_runs(answer) or answer
  local row = accepted .. ":" .. request.digest .. ":" .. request.seed .. ":" .. numbers
  local kept = redis.call("HMGET", requests, "", request.id)
  local before = tonumber(kept[1] or "") or 0
  local bytes = before - run_bytes(kept[2]) + run_bytes(row)
  redis.call("HSET", requests, request.id, row)
  redis.call("ZADD", request_times, accepted, request.id)
  local old = redis.call("ZRANGEBYSCORE", request_times, "-inf", text(now - 120000), "LIMIT", 0, 10)
  if #old == 0 and redis.call("ZCARD", request_times) > 10000 then
    old = redis.call("ZRANGE", request_times, 0, 0)
  end
  if #old > 0 then
    bytes = bytes - forget_answers(requests, request_times, old)
  end
  for _ = 1, 100 do -- the next call goes on
    if bytes <= 16777216 or redis.call("ZCARD", request_times) < 2 then
      break
    end
    bytes = bytes - forget_answers(requests, request_times, redis.call("ZRANGE", request_times, 0, 0))
  end
  if bytes ~= before then
    redis.call("HSET", requests, "", text(bytes))
  end
  redis.call("PEXPIRE", requests, 120000)
  redis.call("PEXPIRE", request_times, 120000)
end
