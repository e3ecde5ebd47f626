-- make_transfers makes the transfer dead-letter queue of an entity unless there is one (DLQ-19). It is a queue of its own with nothing on
-- its main side, so that whatever receives dead letters receives these.
--@include write_entity
--@include share_options
local function make_transfers(entity, transfers, now)
  if redis.call("EXISTS", transfers) == 0 then
    write_entity(transfers, "transfer dead-letter queue", now, {})
    share_options(entity, transfers)
  end
end
