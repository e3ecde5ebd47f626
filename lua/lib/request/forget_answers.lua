-- forget_answers forgets the answers kept under some request ids. Returns how many bytes they count for.
--@include request/run_bytes
local function forget_answers(requests, request_times, ids)
  local bytes = 0
  for _, row in ipairs(redis.call("HMGET", requests, unpack(ids))) do
    bytes = bytes + run_bytes(row)
  end
  redis.call("HDEL", requests, unpack(ids))
  redis.call("ZREM", request_times, unpack(ids))
  return bytes
end
