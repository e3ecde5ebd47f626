-- close_copies ends a script's work on the subscriptions that got copies: it writes their numbers and bytes, wakes
-- those who wait, and keeps alarm_ms true. Returns the notifications of those that have any, as number and
-- notifications in turn: see close_queue.
--@include base/text
--@include entity/close_queue
--@include intake/close_target
--@include topic/store_group
local function close_copies(topic, targets)
  store_group(topic)
  local notifications = {}

  -- close does so for a subscription of which all keys are known.
  local function close_whole(target)
    local queue = target.queue
    redis.call("HSET", target.entity, "sequence", text(target.sequence))
    redis.call("HINCRBY", target.entity, "bytes", text(target.added))
    queue.main.newly_available = queue.main.newly_available + target.newly_available
    return close_queue(queue)
  end

  local function close(target)
    redis.call("HSET", target.entity, "sequence", text(target.sequence), "bytes", text(target.bytes + target.added),
      "chunked", text(target.chunked), "chunk_extra", text(target.chunk_extra))
    return close_target(target)
  end

  for i, target in ipairs(targets) do
    if target.sequence > target.first then
      local said = target.queue and close_whole(target) or close(target)
      if said ~= "0" then
        notifications[#notifications + 1], notifications[#notifications + 2] = i, said
      end
    end
  end
  return notifications
end
