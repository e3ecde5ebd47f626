-- sizes_of_chunk returns the sizes of the messages of a chunk, false for those that are gone.
local function sizes_of_chunk(chunk)
  if not chunk.sizes then
    chunk.sizes, chunk.left = {}, 0
    for size in string.gmatch(chunk.list, "[^,]+") do
      chunk.sizes[#chunk.sizes + 1] = size ~= "-" and size
      chunk.left = chunk.left + (size ~= "-" and 1 or 0)
    end
  end
  return chunk.sizes
end
