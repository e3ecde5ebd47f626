-- delete_spans deletes messages whose locks hold, as delete_own does, but chunks as a whole. spans are their positions,
-- first and last in turn, of these sizes (log/parse_sizes). Returns the bytes deleted, and by how many fewer messages
-- beyond one each the chunks have; nil when the size of a message that has an entry of its own is wrong, and then at
-- most such messages are deleted.
--@include log/parse_chunk
--@include log/sizes_of_chunk
--@include log/save_chunk
--@include log/delete_own
--@include log/parse_sizes
--@include log/release_bodies
--@include base/text
local function delete_spans(side, spans, sizes)
  local chunks, by_id, own, count, bytes, fewer = {}, {}, {}, 0, 0, 0
  local over, members, groups, size_of = {}, {}, {}, nil
  -- take takes a part of a chunk, or all.
  local function take(chunk, first, last)
    if first == chunk.first and last == chunk.last and not string.find(chunk.list, "-", 1, true) then
      over[#over + 1], members[#members + 1], groups[#groups + 1] = chunk.id, chunk.member, chunk.group
      bytes, fewer = bytes + chunk.bytes, fewer + last - first
      return
    end
    if not by_id[chunk.id] then
      by_id[chunk.id], chunks[#chunks + 1] = chunk, chunk
    end
    chunk = by_id[chunk.id]
    local parts = sizes_of_chunk(chunk)
    for place = first - chunk.first + 1, last - chunk.first + 1 do
      if parts[place] then
        bytes, parts[place], chunk.left = bytes + parts[place], false, chunk.left - 1
        fewer = fewer + (chunk.left > 0 and 1 or 0)
      end
    end
  end
  for i = 1, #spans, 2 do
    local position, last = spans[i], spans[i + 1]
    local found = {}
    if side.chunked > 0 then
      found = redis.call("ZREVRANGEBYSCORE", side.chunks, text(position), "-inf", "LIMIT", 0, 1)
      for _, member in ipairs(redis.call("ZRANGEBYSCORE", side.chunks, "(" .. text(position), text(last))) do
        found[#found + 1] = member
      end
    end
    local function take_own(to)
      for at = position, to do
        size_of, count = size_of or parse_sizes(sizes), count + 1
        own[#own + 1] = text(at) .. "-" .. size_of[count]
      end
      position = math.max(position, to + 1)
    end
    for _, member in ipairs(found) do
      local chunk = parse_chunk(member)
      local bound = math.min(last, chunk.last)
      if bound >= position then
        take_own(chunk.first - 1)
        take(chunk, position, bound)
        count, position = count + bound - position + 1, bound + 1
      end
    end
    take_own(last)
  end
  local own_bytes, wrong = delete_own(side, own)
  if wrong then
    return nil
  end
  if #over > 0 then
    redis.call("XDEL", side.log, unpack(over))
    redis.call("ZREM", side.chunks, unpack(members))
  end
  for _, group in ipairs(groups) do
    release_bodies(side, group)
  end
  for _, chunk in ipairs(chunks) do
    save_chunk(side, chunk)
  end
  return bytes + own_bytes, fewer
end
