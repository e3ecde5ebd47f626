-- close_member ends the work of a transaction on a member: it writes what the sends have changed, stamps the use, wakes
-- those who wait and keeps alarm_ms true. It forgets at most so many old keys. Returns the notifications: see
-- close_queue, and how many keys it forgot.
--@include base/text
--@include due/expect
--@include duplicate/forget_old_keys
--@include entity/close_queue
--@include entity/touch
--@include intake/raise_largest
--@include schedule/save_scheduled
local function close_member(member, most)
  local queue, target, forgotten = member.queue, member.target, 0
  if target then
    save_scheduled(target)
    redis.call("HSET", queue.entity, "sequence", text(target.sequence))
    redis.call("HINCRBY", queue.entity, "bytes", text(member.added))
    raise_largest(target, target.largest_sent)
    if target.deduplicates then
      forgotten = forget_old_keys(target, math.min(most, 100 + 2 * (target.sequence - member.first_number)))
    end
    if target.expected then
      expect(queue, target.expected)
    end
    queue.main.newly_available = queue.main.newly_available + (target.newly_available or 0)
  end
  touch(queue.entity, queue.now)
  return close_queue(queue), forgotten
end
