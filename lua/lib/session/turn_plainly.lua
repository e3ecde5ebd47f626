-- turn_plainly does what turn does, if nothing about the queue asks for more than to complete messages and to lock the
-- next available ones, and the answer can hold all. Else it returns nil and has done nothing. keys and args are of
-- turn. Returns its reply.
--@include base/text
--@include base/in_pieces
--@include base/check_key_types
--@include entity/can_receive
--@include entity/touch
--@include session/read_turns
--@include session/resolve_tokens
--@include session/complete_held
local function turn_plainly(keys, args, now, awaited)
  local entity, log, locks, waiting, by_session = keys[1], keys[2], keys[4], keys[5], keys[28]
  local session_waiting, nonce, sidecar = keys[32], ":" .. args[3], args[4] .. ":"
  local values = redis.call("HMGET", entity, "status", "kind", "blocked", "expiring", "alarm_ms", "largest",
    "session_in_flight", "lock_duration_ms")
  local after, alarm = math.min(10000, values[8] or 0), tonumber(values[5] or "0")
  if alarm > 0 then
    after = math.min(after, alarm - now)
  end
  local waits = not awaited and (values[2] == "queue" or values[2] == "subscription") -- as in lib/entity/lacks_fence
    or values[2] and redis.call("HGET", entity, "durability") == awaited
  local is_plain = waits and can_receive(values[1]) and values[3] ~= "1" and not values[4] and after > 0
    and redis.call("EXISTS", keys[6], keys[7], keys[9], keys[10], keys[11]) == 0
  if not is_plain then
    return nil
  end
  check_key_types({ waiting, locks, by_session }, { session_waiting, log }, 1)

  local turns, tokens, _, completes = read_turns(args, 5)
  local main = {
    log = log, locks = locks, deliveries = keys[6], expiry = keys[7], deferred = keys[10], modified = keys[11],
  }
  local queue = {
    now = now, entity = entity, main = main, session_locks = keys[30], session_tokens = keys[31],
    session_waiting = session_waiting,
  }
  local held, left, weight, seen = resolve_tokens(queue, tokens), tonumber(args[2]), (values[6] or 0) + 256, {}
  for _, turn in ipairs(turns) do
    local holder, bytes = held[turn.token], turn.limit * weight
    left = left - bytes
    if not holder or seen[holder.session] or bytes > turn.left or left < 0 then
      return nil -- a queue without sessions has no holders
    end
    seen[holder.session] = true
  end

  touch(entity, now)
  if completes then
    complete_held(queue, held, turns, args)
  end
  local in_flight, rows, taken, locked, waits = tonumber(values[7]), {}, {}, {}, {}
  for i, turn in ipairs(turns) do
    local holder = held[turn.token]
    local session = holder.session
    local limit, members = 0, {}
    if turn.limit > 0 then
      local begin = session .. "\0"
      limit = math.min(turn.limit, in_flight - redis.call("ZLEXCOUNT", locks, "[" .. begin, "(" .. session .. "\1"))
      if limit > 0 then
        begin = begin .. "a"
        members = redis.call("ZRANGE", by_session, "[" .. begin, "(" .. begin .. ":", "BYLEX", "LIMIT", 0, limit)
      end
      if turn.register == "2" or (turn.register == "1" and #members == 0) then
        waits[#waits + 1], waits[#waits + 2] = session, sidecar .. turn.token
      end
    end
    local row = turn.done .. (limit > 0 and #members == turn.limit and " 1 " or " 0 ") .. text(holder.ends)
    for _, member in ipairs(members) do
      local digits = string.sub(member, -16)
      row = row .. " " .. text(digits)
      taken[#taken + 1] = member
      locked[#locked + 1], locked[#locked + 2] = 0, session .. "\0" .. digits .. nonce
    end
    rows[i] = row
  end
  in_pieces(taken, function(...) redis.call("ZREM", by_session, ...) end)
  in_pieces(locked, function(...) redis.call("ZADD", locks, ...) end)
  in_pieces(waits, function(...) redis.call("HSET", session_waiting, ...) end)
  return { "OK", "0", text(after), {}, {}, unpack(rows) }
end
