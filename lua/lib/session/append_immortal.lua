-- append_immortal appends a message that never expires to its session, in fewer steps than append_message. The record
-- of the session must be read already (read_sessions).
--@include base/text
--@include session/session_member
local function append_immortal(target, size, payload, session)
  local puts, number, record = target.puts, text(target.sequence + 1), target.records[session]
  target.sequence, record.sequence, record.activity = target.sequence + 1, record.sequence + 1, target.now
  redis.call("XADD", target.log, number .. "-" .. size, target.immortal, payload, "s", session, "q",
    text(record.sequence))
  puts[#puts + 1], puts[#puts + 2] = 0, session_member(session, "a", number)
  target.touched[session] = target.touched[session] or "added"
end
