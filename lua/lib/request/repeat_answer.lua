-- repeat_answer returns the answer to a call whose request id was taken in the last two minutes (IDEM-1): the first
-- answer, or that the messages differ; nil for a new call.
local function repeat_answer(requests, request, now)
  local accepted, digest, seed, answer = string.match(redis.call("HGET", requests, request.id) or "",
    "^(%d+):([^:]*):([^:]*):(.*)$")
  if not accepted or tonumber(accepted) + 120000 <= now then
    return nil
  end
  if digest ~= request.digest then
    return { "OTHER_MESSAGES" }
  end
  return { "AGAIN", seed, answer }
end
