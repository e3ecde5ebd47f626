-- open_transfers: make the transfer dead-letter queue of an entity before a verb on it (DLQ-19), which counts as use
-- of the entity (IDLE-6).
-- Reads: entity, transfers_entity.  Writes: entity, transfers_entity.
-- Flags: allow-oom
--
-- KEYS[1] entity     hash  options and state of the queue or subscription
-- KEYS[2] transfers_entity  hash  options and state of its transfer dead-letter queue
-- ARGV[1] now        int   0 = server time
-- ARGV[2] settles    int   1: the verb ends or extends locks, which every status permits (STAT-2)
--
-- Returns
--   OK
--   ENTITY_NOT_FOUND
-- Cost: O(1)
--@include entity/plain_kind
--@include entity/can_receive
--@include base/now_ms
--@include base/text
--@include entity/touch
--@include transfer/ensure_transfers
local entity, transfers_entity, now, settles = KEYS[1], KEYS[2], now_ms(ARGV[1]), ARGV[2] == "1"

local values = redis.call("HMGET", entity, "kind", "status")
local kind = plain_kind(values[1])
if kind ~= "queue" and kind ~= "subscription" then
  return { "ENTITY_NOT_FOUND" }
end
ensure_transfers(entity, transfers_entity, text(now))
if settles or can_receive(values[2]) then
  touch(entity, now)
end
return { "OK" }
