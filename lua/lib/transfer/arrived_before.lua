-- arrived_before returns what became of the messages of a transfer that arrived before, in the form of note_arrival;
-- nil when it did not. A source has one transfer at a time and numbers them upwards, so only the last one is kept. If
-- that is another one whose number is not lower, the second result is that number: a slow forwarder asks about an old
-- transfer, or the source forgot that it assigned the number. Then it gets another number, but keeps its nonce: what
-- has arrived in one partition of a destination before another partition asked for that is known by the nonce.
local function arrived_before(arrivals, source, id)
  local number, nonce, outcomes = string.match(redis.call("HGET", arrivals, source) or "", "^(%d+):(%d+):%d+:(.*)$")
  if nonce and nonce == string.match(id, "%d+$") then
    return outcomes
  end
  return nil, number and tonumber(number) >= tonumber(string.match(id, "^%d+")) and number or nil
end
