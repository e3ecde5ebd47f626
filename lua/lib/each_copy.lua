-- each_copy goes through the copies of a message, in the order in which they are stored. The text has them one behind the other, with a
-- blank between: "<first>-<last>" are copies for these subscriptions of the message's first form, "<subscription>:<form>" one of
-- another form, and "<subscription>:<form>:<reason>" one that is a dead letter. with gets these three numbers, nil for no reason.
local function each_copy(copies, with)
  for item in string.gmatch(copies, "%S+") do
    local first, last = string.match(item, "^(%d+)%-(%d+)$")
    if first then
      for i = tonumber(first), tonumber(last) do
        with(i, 1, nil)
      end
    else
      local target, form, reason = string.match(item, "^(%d+):(%d+):?(%d*)$")
      with(tonumber(target), tonumber(form), tonumber(reason))
    end
  end
end
