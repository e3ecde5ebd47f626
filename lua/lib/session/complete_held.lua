-- complete_held removes the messages that turns complete in sessions that they hold, and notes in each turn which were
-- there. One that is named twice ends once. args are those of turn.lua.
--@include base/in_pieces
--@include base/text
--@include log/forget_changes
--@include log/delete_own
--@include wake/wake_holders
local function complete_held(queue, held, turns, args)
  local main, locks, is_locked = queue.main, {}, {}
  for _, turn in ipairs(turns) do
    local holder = held[turn.token]
    for i = turn.first, holder and turn.last or 0, 2 do
      locks[#locks + 1] = holder.session .. "\0" .. args[i]
    end
  end
  local at = 0
  in_pieces(locks, function(...)
    for _, score in ipairs(redis.call("ZMSCORE", main.locks, ...)) do
      at = at + 1
      is_locked[locks[at]] = score and true
    end
  end)
  -- The ids of what is there, and of these, which are wrong.
  local ids, id_of = {}, {}
  at = 0
  for _, turn in ipairs(turns) do
    for i = turn.first, held[turn.token] and turn.last or 0, 2 do
      at = at + 1
      local lock = locks[at]
      if is_locked[lock] and not id_of[lock] then
        id_of[lock], ids[#ids + 1] = args[i + 1], args[i + 1]
      end
    end
  end
  local bytes, wrong = delete_own(main, ids)

  local ended, positions, freed = {}, {}, {}
  at = 0
  for _, turn in ipairs(turns) do
    local holder, done, any = held[turn.token], { "-" }, false
    for _ = turn.first, holder and turn.last or 0, 2 do
      at = at + 1
      local id = id_of[locks[at]]
      local ends = id and not (wrong and wrong[id])
      if ends then
        id_of[locks[at]], any = nil, true
        ended[#ended + 1], positions[#positions + 1] = locks[at], string.match(id, "^%d+")
      end
      done[#done + 1] = ends and "1" or "0"
    end
    turn.done = table.concat(done)
    if any then
      freed[#freed + 1] = holder.session
    end
  end
  if #ended == 0 then
    return
  end
  wake_holders(queue, freed) -- one more may be in flight
  in_pieces(ended, function(...) redis.call("ZREM", main.locks, ...) end)
  -- Nearly always there is nothing beside the log.
  if redis.call("EXISTS", main.deliveries, main.expiry, main.deferred, main.modified) > 0 then
    for _, position in ipairs(positions) do
      bytes = bytes + forget_changes(main, position)
    end
    in_pieces(positions, function(...)
      redis.call("HDEL", main.deliveries, ...)
      redis.call("ZREM", main.expiry, ...)
      redis.call("ZREM", main.deferred, ...)
    end)
  end
  redis.call("HINCRBY", queue.entity, "bytes", text(-bytes))
end
