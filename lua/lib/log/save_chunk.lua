-- save_chunk keeps what is left of a chunk after messages of it are gone, or deletes it when nothing is.
--@include base/text
--@include log/release_bodies
local function save_chunk(side, chunk)
  redis.call("ZREM", side.chunks, chunk.member)
  if chunk.left == 0 then
    redis.call("XDEL", side.log, chunk.id)
    release_bodies(side, chunk.group)
    return
  end
  local sizes = {}
  for place, size in ipairs(chunk.sizes) do
    sizes[place] = size or "-"
  end
  chunk.list = table.concat(sizes, ",")
  chunk.member = table.concat({ chunk.id, text(chunk.last), chunk.list, chunk.group ~= "" and chunk.group or nil }, ":")
  redis.call("ZADD", side.chunks, text(chunk.first), chunk.member)
end
