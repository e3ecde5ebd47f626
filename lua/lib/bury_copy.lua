-- bury_copy stores a copy of a message of a topic among the dead letters of a subscription at once (RULE-8, SESS-7, ACT-9, TOPIC-7). Its
-- number is then none to hand out. why has reason and description, which may be nil, and the cause in one letter as in bury_entry: a,
-- f = a filter failed, h = headers too large, s = no session id, o = MaxMessageCount.
--@include text
--@include add_gap
--@include add_dead_letter
--@include block_session
local function bury_copy(queue, number, times, copy, origin, why)
  add_dead_letter(queue, { times, copy.payload, "e", origin }, copy.size, number, "0", why.reason, why.description)
  redis.call("HINCRBY", queue.entity, "dead_bytes", copy.size)
  if not queue.has_sessions then
    add_gap(queue.entity, queue.main, tonumber(number), tonumber(number))
  elseif copy.session ~= "" then
    block_session(queue, copy.session)
  end
  queue.buried = (queue.buried or "") .. " " .. number .. why.cause
end
