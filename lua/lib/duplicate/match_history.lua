-- match_history finds which messages of a call the duplicate history knows. keys are theirs, in their order. Returns
-- for each the number of the original, 0 when that is in the same call; nil for one that is new.
--@include base/in_pieces
--@include duplicate/find_original
local function match_history(target, keys)
  local originals, seen, at = {}, {}, 0
  in_pieces(keys, function(...)
    for _, entry in ipairs(redis.call("HMGET", target.history, ...)) do
      at = at + 1
      local key = keys[at]
      originals[at] = seen[key] and 0 or find_original(target, key, entry)
      seen[key] = true
    end
  end)
  return originals
end
