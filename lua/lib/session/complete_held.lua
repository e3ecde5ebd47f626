-- complete_held removes the messages that turns complete in sessions that they hold, and notes in each turn which were
-- there. One that is named twice ends once. args are those of turn.lua.
--@include base/in_pieces
--@include base/text
--@include log/forget_changes
--@include log/delete_own
--@include wake/wake_holders
local function complete_held(queue, held, turns, args)
  local main, locks, ids, holds, named, all, at = queue.main, {}, {}, {}, {}, true, 0
  for _, turn in ipairs(turns) do
    local holder = held[turn.token]
    for i = turn.first, holder and turn.last or 0, 2 do
      locks[#locks + 1], ids[#ids + 1] = holder.session .. "\0" .. args[i], args[i + 1]
    end
  end
  in_pieces(locks, function(...)
    for _, score in ipairs(redis.call("ZMSCORE", main.locks, ...)) do
      at = at + 1
      holds[at] = score and not named[locks[at]]
      named[locks[at]], all = true, all and holds[at]
    end
  end)

  -- Nearly always all hold. Else those are left out that do not, or that have another id in the log.
  local function without_others(list, wrong)
    local left = {}
    for i, one in ipairs(list) do
      holds[i] = holds[i] and not (wrong and wrong[ids[i]])
      if holds[i] then
        left[#left + 1] = one
      end
    end
    return left
  end
  local bytes, wrong = delete_own(main, all and ids or without_others(ids))
  all = all and not wrong
  local ended = all and locks or without_others(locks, wrong)
  if not all then
    ids = without_others(ids)
  end

  local freed = {}
  at = 0
  for _, turn in ipairs(turns) do
    local holder, done, any = held[turn.token], { "-" }, false
    for _ = turn.first, holder and turn.last or 0, 2 do
      at = at + 1
      done[#done + 1], any = holds[at] and "1" or "0", any or holds[at]
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
    local positions = {}
    for i, id in ipairs(ids) do
      positions[i] = string.match(id, "^%d+")
      bytes = bytes + forget_changes(main, positions[i])
    end
    in_pieces(positions, function(...)
      redis.call("HDEL", main.deliveries, ...)
      redis.call("ZREM", main.expiry, ...)
      redis.call("ZREM", main.deferred, ...)
    end)
  end
  redis.call("HINCRBY", queue.entity, "bytes", text(-bytes))
end
