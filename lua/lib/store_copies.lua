-- store_copies stores the copies of a message of a topic (TOPIC-1, TOPIC-5), origin being its number there. Returns how many bytes more
-- the subscriptions hold then, which is less than none when others made way.
--@include text
--@include each_copy
--@include shorter_ttl
--@include lifetime
--@include expect
--@include append_to_session
--@include bury_copy
--@include drop_oldest
local function store_copies(topic, targets, message, origin)
  local added, immortal = 0, text(topic.now) .. ":0"

  -- store puts a copy behind the others of its subscription.
  local function store(target, copy, number, times, expires)
    local holder = target.queue or target
    if expires then
      redis.call("ZADD", target.expiry, expires, number)
      expect(holder, tonumber(expires))
    end
    if target.has_sessions then
      append_to_session(holder, target.log, number, copy.size, times, copy.payload, copy.session, origin)
    else
      redis.call("XADD", target.log, number .. "-" .. copy.size, times, copy.payload, "e", origin)
      target.came = target.came + 1
    end
    target.added = target.added + copy.size
  end

  -- has_room says whether a copy fits into what MaxMessageCount permits, after the oldest has made way if need be.
  local function has_room(target)
    if redis.call("XLEN", target.log) < target.max_message_count then
      return true
    end
    local dropped = target.overflow == "DROP_OLDEST" and drop_oldest(target.queue)
    added = added - (dropped or 0)
    return dropped
  end

  each_copy(message.copies, function(i, form, reason)
    local target, copy, times, expires = targets[i], message.forms[form], immortal, nil
    local ttl_ms = shorter_ttl(shorter_ttl(copy.ttl_ms, topic.default_ttl_ms), target.default_ttl_ms)
    if ttl_ms >= 0 then
      times, expires = lifetime(topic.now, ttl_ms)
    end
    target.sequence = target.sequence + 1
    local number = text(target.sequence)
    if target.queue then
      target.queue.main.sequence = target.sequence
    end
    if tonumber(copy.size) > target.largest then
      target.largest = tonumber(copy.size)
      redis.call("HSET", target.entity, "largest", copy.size)
    end
    added = added + copy.size
    if reason then
      local why = message.reasons[reason]
      bury_copy(target.queue, number, times, copy, origin, why.cause, why.reason, why.description)
    elseif target.makes_room and not has_room(target) then
      bury_copy(target.queue, number, times, copy, origin, "o", "MaxMessageCountExceeded",
        "the subscription has as many messages as MaxMessageCount permits: " .. text(target.max_message_count))
    else
      store(target, copy, number, times, expires)
    end
  end)
  return added
end
