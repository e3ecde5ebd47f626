-- dead_letter_incoming stores an incoming message among the dead letters at once: a copy of a topic's message (RULE-8,
-- SESS-7, ACT-9, TOPIC-7), whose number there is origin, or one forwarded to a queue (DLQ-9). Its own number is then
-- never handed out. The cause in why is a letter: a, f = a filter failed, h = headers too large, s = no session id, o =
-- MaxMessageCount.
--@include available/add_gap
--@include dead_letter/append_dead_letter
--@include session/block_session
local function dead_letter_incoming(queue, number, times, copy, origin, why)
  local fields = { times, copy.payload }
  if origin then
    fields[3], fields[4] = "e", origin
  end
  append_dead_letter(queue, fields, copy.size, number, "0", why.reason, why.description)
  redis.call("HINCRBY", queue.entity, "dead_bytes", copy.size)
  if not queue.has_sessions then
    add_gap(queue.entity, queue.main, tonumber(number), tonumber(number))
  elseif copy.session ~= "" then
    block_session(queue, copy.session)
  end
  queue.dead_lettered = (queue.dead_lettered or "") .. " " .. number .. why.cause
end
