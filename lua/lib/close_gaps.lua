-- close_gaps moves the cursor over positions right after it whose messages are gone, so that gaps stay few however many
-- messages expire unseen.
--@include text
local function close_gaps(queue)
  local cursor = queue.cursor
  for _, position in ipairs(redis.call("ZRANGE", queue.gaps, 0, 199)) do
    if tonumber(position) > cursor + 1 then
      break
    end
    cursor = math.max(cursor, tonumber(position))
  end
  if cursor > queue.cursor then
    queue.cursor = cursor
    redis.call("ZREMRANGEBYSCORE", queue.gaps, "-inf", cursor)
    redis.call("HSET", queue.entity, "cursor", text(cursor))
  end
end
