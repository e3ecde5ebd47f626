-- save_run keeps what is left of a run that ends at an instant, nil for nothing. A run in more than 16 pieces is
-- dissolved, and each of its messages gets a lock of its own: scripts would have to parse too much. One script
-- dissolves runs of about 1000 messages.
--@include lock/locks_of_run
--@include base/in_pieces
local function save_run(side, nonce, left, ends)
  local _, commas = string.gsub(left or "", ",", ",")
  if left and (commas < 16 or (side.dissolved or 0) >= 1000) then
    redis.call("HSET", side.runs, nonce, left)
    return
  end
  local locks = {}
  for i, lock in ipairs(left and locks_of_run(nonce, left) or {}) do
    locks[2 * i - 1], locks[2 * i] = ends, lock
  end
  in_pieces(locks, function(...) redis.call("ZADD", side.locks, ...) end)
  redis.call("HDEL", side.runs, nonce)
  redis.call("ZREM", side.run_locks, nonce)
  side.run_messages, side.dissolved = side.run_messages - #locks / 2, (side.dissolved or 0) + #locks / 2
end
