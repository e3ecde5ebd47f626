-- close_copies ends a script's work on the subscriptions that got copies: it writes their numbers and bytes, wakes those who wait, and
-- keeps alarm_ms true. Returns the news of those that have any, as number and news in turn: see close_queue.
--@include text
--@include close_queue
--@include close_sessions
--@include wake_next
--@include keep_alarm
--@include call_forwarder
local function close_copies(targets)
  local news = {}

  -- close does so for a subscription of which all keys are known.
  local function close_whole(target)
    local queue = target.queue
    redis.call("HSET", target.entity, "sequence", text(target.sequence))
    redis.call("HINCRBY", target.entity, "bytes", text(target.added))
    queue.main.came = queue.main.came + target.came
    return close_queue(queue)
  end

  local function close(target)
    redis.call("HSET", target.entity, "sequence", text(target.sequence), "bytes", text(target.bytes + target.added))
    local came = target.has_sessions and close_sessions(target) or target.came
    local alarm = keep_alarm(target)
    if came > 0 then
      wake_next(target.waiting, came)
      if target.forwards then
        alarm = call_forwarder(target, alarm)
      end
    end
    return alarm
  end

  for i, target in ipairs(targets) do
    if target.sequence > target.first then
      local said = target.queue and close_whole(target) or close(target)
      if said ~= "0" then
        news[#news + 1], news[#news + 2] = i, said
      end
    end
  end
  return news
end
