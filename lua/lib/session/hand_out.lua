-- hand_out locks the next messages of the sessions that turns hold, as far as each wants some (SESS-25 to SESS-28), and
-- notes in each turn their positions and whether there may be more at once. nonce is what distinguishes these locks,
-- sidecar where holders wait for more. expire is expire_in_session, or nil when no message of the queue can expire.
--@include answer/fit_members
--@include base/in_pieces
--@include base/text
--@include expiry/is_behind
--@include lock/hold_expiry
--@include session/count_in_flight
--@include session/receivable
--@include session/session_lock_member
--@include session/session_record
local function hand_out(queue, held, turns, most_bytes, nonce, sidecar, expire)
  local main, behind = queue.main, is_behind(queue)
  -- What is taken from all sessions changes hands at once, but before the same session is looked at again.
  local taken, locks, seen, total = {}, {}, {}, { left = most_bytes, is_empty = true }
  local function change_hands()
    in_pieces(taken, function(...) redis.call("ZREM", queue.by_session, ...) end)
    in_pieces(locks, function(...) redis.call("ZADD", main.locks, ...) end)
    taken, locks, seen = {}, {}, {}
  end

  -- take returns the positions of the next messages of a session, and whether there may be more at once.
  local function take(session, turn)
    local limit = math.min(turn.limit, queue.in_flight - count_in_flight(queue, session))
    if limit < 1 or (queue.any_blocked and session_record(queue, session).blocked ~= "") then
      return {}, false
    end
    if behind or queue.expiring then
      return {}, true
    end
    local members = receivable(queue, session, limit)
    if #members == 0 then
      return {}, false
    end
    local positions, over, left_out = {}, {}, nil
    members, left_out = fit_members(queue, members, turn, total)
    for i, member in ipairs(members) do
      positions[i], taken[#taken + 1] = text(string.sub(member, -16)), member
    end
    if expire then
      positions, over = hold_expiry(queue, main, positions)
    end
    for _, position in ipairs(positions) do
      locks[#locks + 1], locks[#locks + 2] = 0, session_lock_member(session, position, nonce)
    end
    if #over > 0 then
      change_hands()
      expire(queue, session, over)
    end
    if left_out == "full" and (#positions > 0 or #over == 0) then
      return positions, false
    end
    return positions, #over > 0 or left_out == "later" or #positions == turn.limit
  end

  for _, turn in ipairs(turns) do
    local holder = held[turn.token]
    local session = turn.limit > 0 and holder and holder.session
    if session then
      if seen[session] then
        change_hands()
      end
      seen[session] = true
      turn.positions, turn.more = take(session, turn)
      if turn.register == "2" or (turn.register == "1" and #turn.positions == 0) then
        redis.call("HSET", queue.session_waiting, session, sidecar .. ":" .. turn.token)
      end
    end
  end
  change_hands()
end
