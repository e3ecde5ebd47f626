-- resolve_tokens returns for each token the session it holds now and the end of its lock, { session, ends }; nil for a
-- token that holds none.
--@include base/in_pieces
local function resolve_tokens(queue, tokens)
  local held, sessions, of = {}, {}, {}
  local at = 0
  in_pieces(tokens, function(...)
    for _, session in ipairs(redis.call("HMGET", queue.session_tokens, ...)) do
      at = at + 1
      if session then
        sessions[#sessions + 1], of[#of + 1] = session, tokens[at]
      end
    end
  end)
  at = 0
  in_pieces(sessions, function(...)
    for _, ends in ipairs(redis.call("ZMSCORE", queue.session_locks, ...)) do
      at = at + 1
      if ends and tonumber(ends) > queue.now then
        held[of[at]] = { session = sessions[at], ends = tonumber(ends) }
      end
    end
  end)
  return held
end
