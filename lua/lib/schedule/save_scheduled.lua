-- save_scheduled enters what schedule_message stored in this script into due, scheduled_ids and, on a queue without
-- sessions, gaps.
--@include base/in_pieces
--@include available/add_gap
local function save_scheduled(entity)
  if not entity.new_dues then
    return
  end
  in_pieces(entity.new_dues, function(...) redis.call("ZADD", entity.due, ...) end)
  in_pieces(entity.new_ids, function(...) redis.call("ZADD", entity.scheduled_ids, ...) end)
  if entity.gap_last and entity.gaps then
    add_gap(entity.entity, entity, entity.gap_first, entity.gap_last)
  end
end
