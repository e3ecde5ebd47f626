-- refuse returns why an entity does not take a call, as { code, details ... }, nil when it does. The first reason in
-- the order of these checks wins. load is what the call brings (shapes/load.lua). held, messages and free_keys of the
-- entity count what it holds, with the calls of this script so far (reserve); without held its bytes have no bound.
--@include entity/can_send
--@include duplicate/history_capacity
local function refuse(entity, load)
  if load.too_large then
    return { "MESSAGE_SIZE_EXCEEDED", load.index, load.total, entity.max_message_bytes }
  end
  if load.count > 1 and load.total > entity.max_batch_bytes then
    return { "MESSAGE_SIZE_EXCEEDED", -1, load.total, entity.max_batch_bytes }
  end
  if load.wide then
    return load.wide
  end
  if not can_send(entity.status) then
    return { "ENTITY_DISABLED", entity.status }
  end
  if load.without_session then
    return { "SESSION_ID_MISSING", load.without_session }
  end
  if load.apart then
    return { "PARTITION_KEY_MISMATCH", load.apart }
  end
  if load.unmatched then
    return { "NO_MATCHING_SUBSCRIPTION", load.unmatched }
  end
  if load.new == 0 then
    return nil
  end
  if entity.held and entity.held + load.bytes > entity.max_bytes then
    return { "ENTITY_FULL", "bytes", entity.held + load.bytes, entity.max_bytes, entity.dead_bytes, 0 }
  end
  local most = entity.max_message_count or 0
  if most > 0 and load.counted > 0 and entity.messages + load.counted > most then
    return { "ENTITY_FULL", "messages", entity.messages + load.counted, most, entity.dead_bytes, 0 }
  end
  if load.full then
    return load.full
  end
  if load.keys > 0 then
    entity.free_keys = entity.free_keys or history_capacity(entity)
    if load.keys > entity.free_keys then
      return { "QUOTA_EXCEEDED", entity.duplicate_max_entries }
    end
  end
  if entity.sequence + load.new > 9007199254740991 then
    return { "INTERNAL" }
  end
  return nil
end
