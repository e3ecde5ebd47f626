-- schedule_message stores a message that is to be enqueued later, under the next number of a queue or topic (SCHED-1).
-- A queue does not hand that number out. The script calls save_scheduled when it has scheduled all its messages.
--@include base/text
--@include due/expect
--@include available/add_gap
--@include session/put_in_session
--@include session/session_record
--@include schedule/scheduled_id
local function schedule_message(entity, message)
  local number = entity.sequence + 1
  local member, position = string.format("%016d", number), text(number)
  local id, times = position .. "-" .. message.size, text(entity.now) .. ":" .. text(message.ttl_ms)
  entity.sequence = number
  if entity.has_sessions then
    redis.call("XADD", entity.scheduled, id, times, message.payload, "i", message.id, "p", message.partition, "s",
      message.session)
    put_in_session(entity, message.session, "s", position)
    session_record(entity, message.session).activity = entity.now
  else
    redis.call("XADD", entity.scheduled, id, times, message.payload, "i", message.id, "p", message.partition)
    if entity.gaps and entity.gap_last and entity.gap_last + 1 < number then
      add_gap(entity.entity, entity, entity.gap_first, entity.gap_last)
      entity.gap_first = nil
    end
    entity.gap_first, entity.gap_last = entity.gap_first or number, number
  end
  local dues, ids = entity.new_dues or {}, entity.new_ids or {}
  dues[#dues + 1], dues[#dues + 2] = message.due_ms, member
  ids[#ids + 1], ids[#ids + 2] = 0, scheduled_id(message.id, member)
  entity.new_dues, entity.new_ids = dues, ids
  expect(entity, message.due_ms)
end
