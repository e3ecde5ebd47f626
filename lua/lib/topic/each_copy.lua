-- each_copy calls a function for each copy of a message, in the order in which they are stored. In the text
-- "<first>-<last>" are copies of the first form for these subscriptions, "<subscription>:<form>" one of another form,
-- "<subscription>:<form>:<reason>" a dead letter; blanks are between. with gets the three numbers, nil for no reason.
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
