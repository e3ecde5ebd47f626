-- delete_ids deletes messages whose locks hold, as delete_own does, in chunks or not.
--@include log/chunk_over
--@include log/sizes_of_chunk
--@include log/delete_entry
--@include log/delete_own
local function delete_ids(side, ids)
  if side.chunked == 0 then
    return delete_own(side, ids)
  end
  local own, altered, chunk_bytes = {}, {}, 0
  for _, id in ipairs(ids) do
    local position, size = string.match(id, "^(%d+)%-(%d+)$")
    local chunk = chunk_over(side, position)
    local stored = chunk and sizes_of_chunk(chunk)[position - chunk.first + 1]
    if not chunk then
      own[#own + 1] = id
    elseif stored == size then
      delete_entry(side, { id })
      chunk_bytes = chunk_bytes + size
    elseif stored then
      altered[#altered + 1] = id
    end
  end
  local bytes, wrong = delete_own(side, own)
  for _, id in ipairs(altered) do
    wrong = wrong or {}
    wrong[id] = true
  end
  return bytes + chunk_bytes, wrong
end
