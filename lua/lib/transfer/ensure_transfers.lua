-- ensure_transfers makes the transfer dead-letter queue of an entity unless there is one (DLQ-19). It is a queue with
-- nothing on its main side, so every script that receives dead letters receives these.
--@include entity/write_entity
--@include transfer/share_options
local function ensure_transfers(entity, transfers, now)
  if redis.call("EXISTS", transfers) == 0 then
    write_entity(transfers, "transfer dead-letter queue", now, {})
    share_options(entity, transfers)
  end
end
