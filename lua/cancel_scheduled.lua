-- cancel_scheduled: remove scheduled messages, by sequence number all or none (SCHED-5), or all with one of some
-- message ids
-- (SCHED-8).
-- Reads: all.  Writes: scheduled, due, scheduled_ids, history, entity.
-- Flags: allow-oom
--
-- KEYS[1..41] queue  all keys of the queue or topic, in the order of lib/entity/open_queue.lua
-- ARGV[1] now     str  "<ms>", 0 = server time, or "<ms>;<level>": see lib/entity/lacks_fence.lua
-- ARGV[2] by      str  numbers or ids
-- ARGV[3..] what  str  at most 1000 numbers, each once, or message ids
--
-- Returns
--   OK                 notifications cancelled left
--                      left: 1 = there are more with these ids than one call removes
--   MESSAGE_NOT_FOUND  notifications, then the numbers that are not those of scheduled messages
--   ENTITY_NOT_FOUND
--   ENTITY_DISABLED    status
--   NEEDS_FENCE     level   the caller must wait for that durability; nothing was done
-- Cost: O(messages log N)
--@include base/now_ms
--@include base/slice
--@include entity/open_queue
--@include entity/lacks_fence
--@include entity/can_send
--@include due/clear_due
--@include entity/close_queue
--@include entity/touch
--@include duplicate/open_history
--@include schedule/scheduled_id
--@include schedule/find_scheduled
--@include schedule/remove_scheduled
local now, awaited = now_ms(ARGV[1])
local by, wanted = ARGV[2], slice(ARGV, 3)

local queue = open_queue(KEYS, now, true)
if not queue then
  return { "ENTITY_NOT_FOUND" }
end
local refusal = lacks_fence(queue.entity, queue.kind, awaited)
if refusal then
  return refusal
end
if not can_send(queue.status) then
  return { "ENTITY_DISABLED", queue.status }
end
clear_due(queue)
touch(queue.entity, now)
local members, rows, left = {}, {}, 0
if by == "numbers" then
  local missing
  members, missing = find_scheduled(queue, wanted)
  if #missing > 0 then
    return { "MESSAGE_NOT_FOUND", close_queue(queue), unpack(missing) }
  end
else
  local most = 500
  for _, id in ipairs(wanted) do
    local from = scheduled_id(id)
    local to = string.sub(from, 1, -2) .. "\1"
    for _, row in ipairs(redis.call("ZRANGE", queue.scheduled_ids, "[" .. from, "(" .. to, "BYLEX", "LIMIT", 0,
      most - #members + 1)) do
      if #members == most then
        left = 1
      elseif #row == #from + 16 then
        members[#members + 1], rows[#rows + 1] = string.sub(row, -16), row
      end
    end
  end
end
open_history(queue)
local cancelled = 0
for i, member in ipairs(members) do
  if remove_scheduled(queue, member, true) then
    cancelled = cancelled + 1
  elseif rows[i] then
    redis.call("ZREM", queue.scheduled_ids, rows[i]) -- of a message that is not there
  end
end
return { "OK", close_queue(queue), cancelled, left }
