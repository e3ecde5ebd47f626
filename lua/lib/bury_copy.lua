-- bury_copy stores a message among the dead letters at once: a copy of a message of a topic (RULE-8, SESS-7, ACT-9, TOPIC-7), origin being
-- its number there, or one that was forwarded to a queue (DLQ-9). Its own number is then none to hand out. why has reason and
-- description, which may be nil, and the cause in one letter as in bury_entry: a, f = a filter failed, h = headers too large,
-- s = no session id, o = MaxMessageCount.
--@include text
--@include add_gap
--@include add_dead_letter
--@include block_session
local function bury_copy(queue, number, times, copy, origin, why)
  local fields = { times, copy.payload }
  if origin then
    fields[3], fields[4] = "e", origin
  end
  add_dead_letter(queue, fields, copy.size, number, "0", why.reason, why.description)
  redis.call("HINCRBY", queue.entity, "dead_bytes", copy.size)
  if not queue.has_sessions then
    add_gap(queue.entity, queue.main, tonumber(number), tonumber(number))
  elseif copy.session ~= "" then
    block_session(queue, copy.session)
  end
  queue.buried = (queue.buried or "") .. " " .. number .. why.cause
end
