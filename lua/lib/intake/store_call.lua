-- store_call stores the messages of an admitted call except duplicates, by store(load, place) for each; the first place
-- is 1. Returns the answer: the number of the first message, the others follow; or EACH and a number for each message,
-- negative for a duplicate of that number.
--@include base/text
--@include duplicate/find_original
--@include duplicate/remember_key
local function store_call(target, load, store)
  local originals, ids = load.originals, load.ids
  if load.new == load.count then
    local first = text(target.sequence + 1)
    for place = 1, load.count do
      store(load, place)
      if ids then
        remember_key(target, ids[place], target.sequence)
      end
    end
    return first
  end
  local numbers = { "EACH" }
  for place = 1, load.count do
    local original = originals[place]
    if original then
      numbers[place + 1] = text(-(original > 0 and original or find_original(target, ids[place])))
    else
      store(load, place)
      remember_key(target, ids[place], target.sequence)
      numbers[place + 1] = text(target.sequence)
    end
  end
  return numbers
end
