-- delete_spans deletes messages whose locks hold, as delete_own does, but chunks as a whole. spans are their positions,
-- first and last in turn, in the order of ids. Returns the bytes deleted, and by how many fewer messages beyond one
-- each the chunks have; nil when an id is wrong, and then at most messages that have entries of their own are deleted.
--@include log/parse_chunk
--@include log/sizes_of_chunk
--@include log/save_chunk
--@include log/delete_own
--@include log/release_bodies
--@include base/text
local function delete_spans(side, spans, ids)
  if side.chunked == 0 then
    local bytes, wrong = delete_own(side, ids)
    return not wrong and bytes or nil, 0
  end
  local chunks, by_id, own, count, bytes, fewer = {}, {}, {}, 0, 0, 0
  local over, members, groups = {}, {}, {}
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
    local sizes = sizes_of_chunk(chunk)
    for place = first - chunk.first + 1, last - chunk.first + 1 do
      if sizes[place] then
        bytes, sizes[place], chunk.left = bytes + sizes[place], false, chunk.left - 1
        fewer = fewer + (chunk.left > 0 and 1 or 0)
      end
    end
  end
  for i = 1, #spans, 2 do
    local position, last = spans[i], spans[i + 1]
    local found = redis.call("ZREVRANGEBYSCORE", side.chunks, text(position), "-inf", "LIMIT", 0, 1)
    for _, member in ipairs(redis.call("ZRANGEBYSCORE", side.chunks, "(" .. text(position), text(last))) do
      found[#found + 1] = member
    end
    local function take_own(to)
      for _ = position, to do
        own[#own + 1] = ids[count + 1]
        count = count + 1
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
