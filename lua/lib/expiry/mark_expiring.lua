-- mark_expiring notes that messages of a session up to a number are still to be ended, nil for none. kind says how: ""
-- = they expire together (TTL-23), "d" = they become dead letters (SESS-29). The next script on the queue goes on.
-- Marks of one session are in the order of their numbers.
--@include due/expect
--@include base/text
local function mark_expiring(queue, session, kind, bound)
  local marks, mark = "", bound and text(bound) .. kind .. ":" .. session .. "\0" or ""
  for number, letter, name in string.gmatch(queue.expiring or "", "(%d+)(d?):([^%z]*)%z") do
    if name == session and letter == kind then
      marks, mark = marks .. mark, ""
    else
      marks = marks .. number .. letter .. ":" .. name .. "\0"
    end
  end
  marks = marks .. mark
  if bound then
    expect(queue, queue.now)
    redis.call("HSET", queue.entity, "expiring", marks)
  elseif marks == "" and queue.expiring then
    redis.call("HDEL", queue.entity, "expiring")
  elseif queue.expiring and marks ~= queue.expiring then
    redis.call("HSET", queue.entity, "expiring", marks)
  end
  queue.expiring = marks ~= "" and marks or nil
end
