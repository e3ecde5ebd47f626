-- append_in_sessions stores the messages of a send to a queue with sessions, each of a session, if all are admitted and
-- nothing about the queue asks for more. Else it returns nil and has done nothing. What happens to the sessions is what
-- save_sessions does when messages were only added. keys and args are those of send, in sessions. Returns the reply of
-- send.
--@include base/text
--@include base/in_pieces
--@include base/check_key_types
--@include intake/admit_together
--@include session/session_member
--@include wake/wake_holders
--@include wake/wake_next
local function append_in_sessions(keys, args, now, awaited)
  local entity, log, waiting, by_session, sessions = keys[1], keys[2], keys[4], keys[11], keys[12]
  local ready_sessions, idle_sessions, session_waiting = keys[13], keys[14], keys[15]
  local delayed, states_due = keys[16], keys[17]
  local sequence, bytes, largest = admit_together(entity, args, true, awaited)
  if not sequence or redis.call("EXISTS", delayed) == 1 then
    return nil
  end
  check_key_types({ waiting, by_session, ready_sessions, idle_sessions, states_due },
    { sessions, session_waiting, log }, 2)

  -- Of each session its last SessionSequence, and what its record has behind that and the activity.
  local names, last, rest, at = {}, {}, {}, 0
  for i = 9, #args, 3 do
    local session = args[i]
    if not last[session] then
      last[session], names[#names + 1] = 0, session
    end
  end
  in_pieces(names, function(...)
    for _, record in ipairs(redis.call("HMGET", sessions, ...)) do
      at = at + 1
      local number, others = string.match(record or "0:", "^(%d+):%d*(.*)$")
      last[names[at]], rest[at] = tonumber(number), others
    end
  end)

  local first, activity, puts = text(sequence + 1), ":" .. text(now), {}
  local immortal = text(now) .. ":0"
  for i = 8, #args, 3 do
    local session = args[i + 1]
    local number = last[session] + 1
    sequence, last[session] = sequence + 1, number
    local position = text(sequence)
    redis.call("XADD", log, position .. "-" .. args[i], immortal, args[i + 2], "s", session, "q", text(number))
    puts[#puts + 1], puts[#puts + 2] = 0, session_member(session, "a", position)
  end
  in_pieces(puts, function(...) redis.call("ZADD", by_session, ...) end)

  local records, held, free, ready = {}, {}, {}, {}
  for i, session in ipairs(names) do
    local token, blocked = nil, nil
    if rest[i] ~= "" then
      token, blocked = string.match(rest[i], "^:([^:]*):(b?)")
    end
    records[2 * i - 1], records[2 * i] = session, text(last[session]) .. activity .. rest[i]
    if token and token ~= "" then
      held[#held + 1] = session
    else
      free[#free + 1] = session
      if blocked ~= "b" then
        ready[#ready + 1], ready[#ready + 2] = now, session
      end
    end
  end
  in_pieces(records, function(...) redis.call("HSET", sessions, ...) end)
  if #free > 0 and redis.call("EXISTS", idle_sessions, states_due) > 0 then
    in_pieces(free, function(...)
      redis.call("ZREM", idle_sessions, ...)
      redis.call("ZREM", states_due, ...)
    end)
  end
  local became_ready = 0
  in_pieces(ready, function(...) became_ready = became_ready + redis.call("ZADD", ready_sessions, "NX", ...) end)
  redis.call("HSET", entity, "sequence", text(sequence), "bytes", text(bytes), "accessed_ms", text(now), "largest",
    text(largest))
  wake_holders({ session_waiting = session_waiting }, held)
  if became_ready > 0 then
    wake_next(waiting, became_ready, now)
  end
  return { "OK", "0", first }
end
