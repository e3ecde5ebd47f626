-- wake_holders wakes the sidecars in which the holders of sessions wait: there is something to receive, one more may be
-- in flight, or the lock is gone. A sidecar whose name ends with "+" hears of its sessions together, one of an older
-- version of each in a message of its own.
--@include base/in_pieces
local function wake_holders(queue, sessions)
  if #sessions == 0 or redis.call("EXISTS", queue.session_waiting) == 0 then
    return
  end
  local woken, messages, at = {}, {}, 0
  in_pieces(sessions, function(...)
    for _, waiting in ipairs(redis.call("HMGET", queue.session_waiting, ...)) do
      at = at + 1
      if waiting then
        local sidecar, together, token = string.match(waiting, "^([^:+]*(%+?)):(.*)$")
        local key = together == "" and waiting or sidecar
        messages[key] = messages[key] or { queue.session_waiting .. ":" .. sidecar, "1" }
        woken[#woken + 1], messages[key][#messages[key] + 1] = sessions[at], token
      end
    end
  end)
  for _, message in pairs(messages) do redis.call("SPUBLISH", message[1], table.concat(message, " ", 2)) end
  in_pieces(woken, function(...) redis.call("HDEL", queue.session_waiting, ...) end)
end
