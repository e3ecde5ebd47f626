-- arrived_before gives what became of the messages of a transfer that has arrived before, in the form of lib/note_arrival.lua, nil when it
-- has not. A source has one transfer at a time and numbers them upwards, so the last number is all that must be known. To one that asks
-- about an older one, whose end it did not see, any answer will do: the source does not listen to it.
local function arrived_before(arrivals, source, number)
  local last, outcomes = string.match(redis.call("HGET", arrivals, source) or "", "^(%d+):%d+:(.*)$")
  if not last or tonumber(last) < tonumber(number) then
    return nil
  end
  return last == number and outcomes or ""
end
