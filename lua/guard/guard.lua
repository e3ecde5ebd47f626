-- This is before every script that runs in a partition of a cluster (docs/decisions/0054). The last key is the entity
-- of the partition: if that was not compared with its record in the present history of this server, nothing is done.
--@include entity/history
do
  local entity = table.remove(KEYS)
  local compared_in = redis.call("HGET", entity, "compared_in")
  if compared_in ~= history() and (compared_in or redis.call("EXISTS", entity) == 1) then
    return { "OTHER_HISTORY" }
  end
end
