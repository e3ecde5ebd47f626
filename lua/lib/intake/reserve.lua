-- reserve counts a call that refuse has let in, before its messages are stored.
local function reserve(entity, load)
  if entity.held then
    entity.held = entity.held + load.bytes
  end
  if entity.messages then
    entity.messages = entity.messages + load.counted
  end
  if entity.free_keys then
    entity.free_keys = entity.free_keys - load.keys
  end
end
