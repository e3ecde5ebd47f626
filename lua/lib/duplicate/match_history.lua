-- match_history finds which messages of a call the duplicate history knows. keys are theirs, in their order. Returns
-- for each the number of the original, 0 when that is in the same call; nil for one that is new.
--@include base/in_pieces
--@include duplicate/find_original
local function match_history(target, keys)
  local originals, seen, at = {}, target.seen_keys or {}, 0
  in_pieces(keys, function(...)
    for _, entry in ipairs(redis.call("HMGET", target.history, ...)) do
      at = at + 1
      local key = keys[at]
      local original = find_original(target, key, entry)
      if original and target.forgotten and target.forgotten[original] then
        original = nil
      end
      originals[at] = original or (seen[key] and 0) or nil
      seen[key] = seen[key] or not original
    end
  end)
  return originals
end
