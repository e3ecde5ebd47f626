-- load_of_send describes a call of send, whose messages begin at a place of args and take width items each: see the
-- header of send.
--@include duplicate/history_key
--@include duplicate/match_history
--@include log/size_and_ttl
local function load_of_send(target, args, first, count, width)
  local last, max_message_bytes, largest = first + width * count - 1, target.max_message_bytes, target.largest_sent
  local total, bytes, new, ids, originals = 0, 0, 0, nil, nil
  if target.deduplicates then
    ids = {}
    for i = first, last, width do
      ids[#ids + 1] = history_key(target.partitioned, args[i + 2], args[i + 3])
    end
    originals = match_history(target, ids)
  end
  for i = first, last, width do
    local size = tonumber(args[i]) or tonumber((size_and_ttl(args[i])))
    if size > max_message_bytes then
      return { too_large = true, index = (i - first) / width, total = size }
    end
    if #args[i + width - 1] > largest then
      largest = #args[i + width - 1]
    end
    total = total + size
    if not (originals and originals[(i - first) / width + 1]) then
      bytes, new = bytes + size, new + 1
    end
  end
  target.largest_sent = largest
  local load = {
    first = first, count = count, total = total, bytes = bytes, new = new, counted = new, keys = ids and new or 0,
    ids = ids, originals = originals,
  }
  if target.has_sessions or target.partitioned then
    for i = first, last, width do
      if target.has_sessions and args[i + 4] == "" then
        load.without_session = load.without_session or (i - first) / width
      end
      if target.partitioned and args[i + 3] ~= args[first + 3] then
        load.apart = load.apart or (i - first) / width
      end
    end
  end
  return load
end
