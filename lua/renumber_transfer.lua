-- renumber_transfer: give a transfer that is under way a higher number than the one its destination has seen. The
-- source forgot numbers in a failover and assigned one again, or a lower one (FWD-1, DUR-4).
-- Reads: entity.  Writes: entity.
-- Flags: allow-oom
--
-- KEYS[1] entity       hash  options and state of the queue
-- ARGV[1] sub          str   "" or "dead_": which of the two queues is the source
-- ARGV[2] incarnation  int   of the queue
-- ARGV[3] id           str   "<number>:<nonce>" of the transfer
-- ARGV[4] seen         int   the number at the destination
--
-- Returns
--   OK
--   OVER  this transfer is not under way: nothing was done
-- Cost: O(1)
--@include base/text
local entity, sub, incarnation, id, seen = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local values = redis.call("HMGET", entity, "incarnation", sub .. "transfer")
local note = values[2] or ""
if values[1] ~= incarnation or string.match(note, "^%d+:%d+") ~= id then
  return { "OVER" }
end
local number = text(tonumber(seen) + 1)
redis.call("HSET", entity, sub .. "transfer", number .. string.match(note, "^%d+(:.*)$"), sub .. "transfer_number",
  number)
return { "OK" }
